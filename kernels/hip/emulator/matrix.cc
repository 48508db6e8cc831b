#include "kernels/hip/emulator/matrix.h"

#include <cstring>

#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"
#include "reference/formats/fp8.h"

namespace moegauge::emulator {
namespace {

using enum ElementKind;

// In the order of moe::gpu::Instruction.
constexpr std::array instructions = {
    MatrixInstruction{"v_mfma_f32_16x16x32_fp8_fp8", fp8, 64, 16, 32, 8, 4},
    MatrixInstruction{"v_mfma_f32_32x32x16_fp8_fp8", fp8, 64, 32, 16, 8, 4},
    MatrixInstruction{"v_mfma_i32_16x16x32_i8", int8, 64, 16, 32, 8, 4},
    MatrixInstruction{"v_mfma_i32_32x32x16_i8", int8, 64, 32, 16, 8, 4},
    MatrixInstruction{"v_mfma_f32_16x16x16_bf16", bf16, 64, 16, 16, 4, 4},
    MatrixInstruction{"v_mfma_f32_32x32x8_bf16", bf16, 64, 32, 8, 4, 4},
    MatrixInstruction{"v_mfma_f32_16x16x16_f16", fp16, 64, 16, 16, 4, 4},
    MatrixInstruction{"v_mfma_f32_32x32x8_f16", fp16, 64, 32, 8, 4, 4},
    MatrixInstruction{"v_mfma_f32_16x16x32_bf16", bf16, 64, 16, 32, 8, 4},
    MatrixInstruction{"v_mfma_f32_32x32x16_bf16", bf16, 64, 32, 16, 8, 4},
    MatrixInstruction{"v_mfma_f32_16x16x32_f16", fp16, 64, 16, 32, 8, 4},
    MatrixInstruction{"v_mfma_f32_32x32x16_f16", fp16, 64, 32, 16, 8, 4},
    MatrixInstruction{"v_wmma_f32_16x16x16_fp8_fp8", fp8, 32, 16, 16, 8, 8},
    MatrixInstruction{"v_wmma_i32_16x16x16_iu8", int8, 32, 16, 16, 8, 8},
    // As AMD's calculator has it; published samples have runs of 8. A and B are alike, so a product
    // without scales is the same.
    MatrixInstruction{"v_wmma_f32_16x16x16_bf16", bf16, 32, 16, 16, 4, 8},
    MatrixInstruction{"v_wmma_f32_16x16x16_f16", fp16, 32, 16, 16, 4, 8},
};

thread_local std::array<const MatrixInstruction*, instructions.size()> replaced = {};

// FP8 of both flavours, decoded once.
std::array<std::array<double, 256>, 2> decoded_fp8() {
  std::array<std::array<double, 256>, 2> table;
  for (std::size_t i = 0; i < 256; ++i) {
    const auto code = static_cast<std::uint8_t>(i);
    table[0][i] = static_cast<double>(e4m3fn_to_float(code));
    table[1][i] = static_cast<double>(e4m3fnuz_to_float(code));
  }
  return table;
}

double decode(const std::byte* from, ElementKind kind, bool fnuz) {
  static const auto fp8_values = decoded_fp8();
  if (kind == fp8) return fp8_values[fnuz ? 1 : 0][std::to_integer<std::size_t>(*from)];
  if (kind == int8) return static_cast<std::int8_t>(std::to_integer<int>(*from));
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return static_cast<double>(kind == bf16 ? bf16_to_float(bits) : fp16_to_float(bits));
}

// At most 32 rows (or columns) of at most 32 of K: 1024 values, as the largest instruction has.
using Dense = std::array<double, 1024>;

// One operand as [k][row].
void spread(const MatrixInstruction& m, std::span<const LaneRegisters> lanes,
            std::array<std::byte, 16> LaneRegisters::*operand, bool fnuz, Dense& to) {
  for (int lane = 0; lane < m.lanes; ++lane) {
    const std::byte* registers = (lanes[static_cast<std::size_t>(lane)].*operand).data();
    for (int i = 0; i < m.elements(); ++i) {
      to[static_cast<std::size_t>(m.operand_k(lane, i) * m.dim + lane % m.dim)] =
          decode(registers + i * m.element_bytes(), m.element, fnuz);
    }
  }
}

// C + sum, rounded as the instruction's sums are.
void add(std::byte* c, double sum, ElementKind kind) {
  if (kind == int8) {
    std::uint32_t value;
    std::memcpy(&value, c, sizeof value);
    value += static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
    std::memcpy(c, &value, sizeof value);
    return;
  }
  float value;
  std::memcpy(&value, c, sizeof value);
  value = static_cast<float>(static_cast<double>(value) + sum);
  std::memcpy(c, &value, sizeof value);
}

}  // namespace

void MatrixInstruction::run(std::span<LaneRegisters> lanes_of_wave, bool fnuz) const {
  Dense a, b, products = {};
  spread(*this, lanes_of_wave, &LaneRegisters::a, fnuz, a);
  spread(*this, lanes_of_wave, &LaneRegisters::b, fnuz, b);
  const auto n = static_cast<std::size_t>(dim);
  for (std::size_t j = 0; j < static_cast<std::size_t>(k); ++j) {
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = a[j * n + row];
      for (std::size_t column = 0; column < n; ++column)
        products[row * n + column] += factor * b[j * n + column];
    }
  }
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < sums(); ++i) {
      add(lanes_of_wave[static_cast<std::size_t>(lane)].sums.data() + 4 * i,
          products[static_cast<std::size_t>(sum_row(lane, i) * dim + lane % dim)], element);
    }
  }
}

const MatrixInstruction& instruction(moe::gpu::Instruction which) {
  const auto i = static_cast<std::size_t>(which);
  return replaced[i] != nullptr ? *replaced[i] : instructions[i];
}

InsteadOf::InsteadOf(moe::gpu::Instruction which, const MatrixInstruction& instead) {
  replaced[static_cast<std::size_t>(which)] = &instead;
}
InsteadOf::~InsteadOf() { replaced = {}; }

}  // namespace moegauge::emulator
