// The emulated instructions against their layouts, written down here once more from the sources,
// one formula each: AMD's matrix instruction calculator 1.3.2 for CDNA 3 and RDNA 4. It does not
// know CDNA 4: the layouts of gfx950's own instructions are by analogy with those of gfx942.
#include "kernels/hip/emulator/matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"
#include "reference/formats/fp8.h"

namespace moegauge::emulator {
namespace {

using moe::gpu::Instruction;
using Formula = int (*)(int lane, int i);

struct Layout {
  Instruction which;
  const char* name;
  int lanes, rows, k, elements, sums;
  Formula operand_row, operand_k, sum_row, sum_column;
  friend std::ostream& operator<<(std::ostream& out, const Layout& l) { return out << l.name; }
};

int mod16(int lane, int) { return lane % 16; }
int mod32(int lane, int) { return lane % 32; }
int rows_mfma16(int lane, int g) { return 4 * (lane / 16) + g; }
int rows_mfma32(int lane, int g) { return 8 * (g / 4) + 4 * (lane / 32) + g % 4; }
int rows_wmma(int lane, int g) { return 8 * (lane / 16) + g; }
// 8-bit elements: byte b of register g is element 4 g + b.
int k_bytes16(int lane, int i) { return 8 * (lane / 16) + 4 * (i / 4) + i % 4; }
int k_bytes32(int lane, int i) { return 8 * (lane / 32) + 4 * (i / 4) + i % 4; }
// 16-bit elements: half h of register g is element 2 g + h.
int k_halves16(int lane, int i) { return 4 * (lane / 16) + 2 * (i / 2) + i % 2; }
int k_halves32(int lane, int i) { return 4 * (lane / 32) + 2 * (i / 2) + i % 2; }
int k_long16(int lane, int i) { return 8 * (lane / 16) + 2 * (i / 2) + i % 2; }
int k_long32(int lane, int i) { return 8 * (lane / 32) + 2 * (i / 2) + i % 2; }
int k_wmma_halves(int lane, int i) {
  const int g = i / 2, half = i % 2;
  return 8 * (g / 2) + 4 * (lane / 16) + 2 * (g % 2) + half;
}

const Layout layouts[] = {
    {Instruction::Mfma16x16x32Fp8, "v_mfma_f32_16x16x32_fp8_fp8", 64, 16, 32, 8, 4, mod16,
     k_bytes16, rows_mfma16, mod16},
    {Instruction::Mfma32x32x16Fp8, "v_mfma_f32_32x32x16_fp8_fp8", 64, 32, 16, 8, 16, mod32,
     k_bytes32, rows_mfma32, mod32},
    {Instruction::Mfma16x16x32I8, "v_mfma_i32_16x16x32_i8", 64, 16, 32, 8, 4, mod16, k_bytes16,
     rows_mfma16, mod16},
    {Instruction::Mfma32x32x16I8, "v_mfma_i32_32x32x16_i8", 64, 32, 16, 8, 16, mod32, k_bytes32,
     rows_mfma32, mod32},
    {Instruction::Mfma16x16x16Bf16, "v_mfma_f32_16x16x16_bf16", 64, 16, 16, 4, 4, mod16, k_halves16,
     rows_mfma16, mod16},
    {Instruction::Mfma32x32x8Bf16, "v_mfma_f32_32x32x8_bf16", 64, 32, 8, 4, 16, mod32, k_halves32,
     rows_mfma32, mod32},
    {Instruction::Mfma16x16x16F16, "v_mfma_f32_16x16x16_f16", 64, 16, 16, 4, 4, mod16, k_halves16,
     rows_mfma16, mod16},
    {Instruction::Mfma32x32x8F16, "v_mfma_f32_32x32x8_f16", 64, 32, 8, 4, 16, mod32, k_halves32,
     rows_mfma32, mod32},
    {Instruction::Mfma16x16x32Bf16, "v_mfma_f32_16x16x32_bf16", 64, 16, 32, 8, 4, mod16, k_long16,
     rows_mfma16, mod16},
    {Instruction::Mfma32x32x16Bf16, "v_mfma_f32_32x32x16_bf16", 64, 32, 16, 8, 16, mod32, k_long32,
     rows_mfma32, mod32},
    {Instruction::Mfma16x16x32F16, "v_mfma_f32_16x16x32_f16", 64, 16, 32, 8, 4, mod16, k_long16,
     rows_mfma16, mod16},
    {Instruction::Mfma32x32x16F16, "v_mfma_f32_32x32x16_f16", 64, 32, 16, 8, 16, mod32, k_long32,
     rows_mfma32, mod32},
    {Instruction::Wmma16x16x16Fp8, "v_wmma_f32_16x16x16_fp8_fp8", 32, 16, 16, 8, 8, mod16,
     k_bytes16, rows_wmma, mod16},
    {Instruction::Wmma16x16x16I8, "v_wmma_i32_16x16x16_iu8", 32, 16, 16, 8, 8, mod16, k_bytes16,
     rows_wmma, mod16},
    {Instruction::Wmma16x16x16Bf16, "v_wmma_f32_16x16x16_bf16", 32, 16, 16, 8, 8, mod16,
     k_wmma_halves, rows_wmma, mod16},
    {Instruction::Wmma16x16x16F16, "v_wmma_f32_16x16x16_f16", 32, 16, 16, 8, 8, mod16,
     k_wmma_halves, rows_wmma, mod16},
};

class EmulatedInstruction : public testing::TestWithParam<Layout> {
 protected:
  const Layout& layout() const { return GetParam(); }
  const MatrixInstruction& emulated() const { return instruction(layout().which); }
  bool is_int8() const { return emulated().element == ElementKind::int8; }

  // A small whole number, which every format here holds.
  void put(std::byte* registers, int i, int value, bool fnuz) const {
    const auto v = static_cast<float>(value);
    switch (emulated().element) {
      case ElementKind::fp8:
        registers[i] = std::byte{fnuz ? float_to_e4m3fnuz(v, kE4m3fnuzMax) : float_to_e4m3fn(v)};
        return;
      case ElementKind::int8:
        registers[i] = static_cast<std::byte>(static_cast<std::int8_t>(value));
        return;
      case ElementKind::bf16:
      case ElementKind::fp16: {
        const std::uint16_t bits =
            emulated().element == ElementKind::bf16 ? float_to_bf16(v) : float_to_fp16(v);
        std::memcpy(registers + 2 * i, &bits, 2);
      }
    }
  }
  double sum_of(const LaneRegisters& lane, int i) const {
    if (is_int8()) {
      std::int32_t value;
      std::memcpy(&value, lane.sums.data() + 4 * i, 4);
      return value;
    }
    float value;
    std::memcpy(&value, lane.sums.data() + 4 * i, 4);
    return static_cast<double>(value);
  }
  void set_sum(LaneRegisters& lane, int i, int value) const {
    const auto as_float = static_cast<float>(value);
    if (is_int8())
      std::memcpy(lane.sums.data() + 4 * i, &value, 4);
    else
      std::memcpy(lane.sums.data() + 4 * i, &as_float, 4);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, EmulatedInstruction, testing::ValuesIn(layouts),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(EmulatedInstruction, HasItsNameAndSize) {
  EXPECT_STREQ(emulated().name, layout().name);
  EXPECT_EQ(emulated().lanes, layout().lanes);
  EXPECT_EQ(emulated().elements(), layout().elements);
  EXPECT_EQ(emulated().sums(), layout().sums);
}

TEST_P(EmulatedInstruction, DealsEveryElementToOneRegister) {
  std::vector<int> operand(static_cast<std::size_t>(layout().rows * layout().k)),
      sums(static_cast<std::size_t>(layout().rows * layout().rows));
  for (int lane = 0; lane < layout().lanes; ++lane) {
    for (int i = 0; i < layout().elements; ++i) {
      ++operand.at(static_cast<std::size_t>(layout().operand_row(lane, i) * layout().k +
                                            layout().operand_k(lane, i)));
    }
    for (int i = 0; i < layout().sums; ++i) {
      ++sums.at(static_cast<std::size_t>(layout().sum_row(lane, i) * layout().rows +
                                         layout().sum_column(lane, i)));
    }
  }
  EXPECT_EQ(operand, std::vector<int>(operand.size(), 1));
  EXPECT_EQ(sums, std::vector<int>(sums.size(), 1));
}

// Matrices of whole numbers, dealt to the lanes by this file's formulas, multiplied plainly.
TEST_P(EmulatedInstruction, MultipliesWhatTheLayoutSaysItHolds) {
  const Layout& l = layout();
  for (const bool fnuz : {false, true}) {
    std::mt19937 engine(7);
    std::uniform_int_distribution<int> small(-7, 7);
    std::vector<int> a(static_cast<std::size_t>(l.rows * l.k)), b(a.size()),
        c(static_cast<std::size_t>(l.rows * l.rows));
    for (auto* matrix : {&a, &b, &c})
      for (int& v : *matrix) v = small(engine);
    std::vector<LaneRegisters> lanes(static_cast<std::size_t>(l.lanes));
    for (int lane = 0; lane < l.lanes; ++lane) {
      LaneRegisters& r = lanes[static_cast<std::size_t>(lane)];
      for (int i = 0; i < l.elements; ++i) {
        const auto at =
            static_cast<std::size_t>(l.operand_row(lane, i) * l.k + l.operand_k(lane, i));
        put(r.a.data(), i, a[at], fnuz);
        put(r.b.data(), i, b[at], fnuz);  // b holds columns
      }
      for (int i = 0; i < l.sums; ++i) {
        set_sum(r, i,
                c[static_cast<std::size_t>(l.sum_row(lane, i) * l.rows + l.sum_column(lane, i))]);
      }
    }
    emulated().run(lanes, fnuz);
    for (int lane = 0; lane < l.lanes; ++lane) {
      for (int i = 0; i < l.sums; ++i) {
        const int row = l.sum_row(lane, i), column = l.sum_column(lane, i);
        int expected = c[static_cast<std::size_t>(row * l.rows + column)];
        for (int k = 0; k < l.k; ++k) {
          expected += a[static_cast<std::size_t>(row * l.k + k)] *
                      b[static_cast<std::size_t>(column * l.k + k)];
        }
        ASSERT_EQ(sum_of(lanes[static_cast<std::size_t>(lane)], i), expected)
            << "row " << row << ", column " << column;
      }
    }
  }
}

// The two sources that differ on these (see matrix.cc) give the same product.
TEST(EmulatedInstruction, HalvesOfGfx1201MultiplyAlikeInEitherOrderOfK) {
  std::mt19937 engine(11);
  std::normal_distribution<float> normal;
  std::vector<LaneRegisters> first(32);
  for (LaneRegisters& lane : first) {
    for (auto* operand : {&lane.a, &lane.b}) {
      for (std::size_t i = 0; i < 8; ++i) {
        const std::uint16_t bits = float_to_bf16(normal(engine));
        std::memcpy(operand->data() + 2 * i, &bits, 2);
      }
    }
    lane.sums.fill(std::byte{0});
  }
  std::vector<LaneRegisters> second = first;
  MatrixInstruction other = instruction(Instruction::Wmma16x16x16Bf16);
  other.operand_run = 8;
  instruction(Instruction::Wmma16x16x16Bf16).run(first, false);
  other.run(second, false);
  // To the order of the sums in fp64.
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 8; ++i) {
      float a, b;
      std::memcpy(&a, first[lane].sums.data() + 4 * i, 4);
      std::memcpy(&b, second[lane].sums.data() + 4 * i, 4);
      EXPECT_NEAR(a, b, 1e-6f * std::fabs(a));
    }
  }
}

}  // namespace
}  // namespace moegauge::emulator
