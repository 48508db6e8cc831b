#include "kernels/hip/emulator/matrix.h"

#include <algorithm>
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

template <ElementKind kKind>
double decode(const std::byte* from, const std::array<double, 256>& fp8_values) {
  if constexpr (kKind == fp8) return fp8_values[std::to_integer<std::size_t>(*from)];
  if constexpr (kKind == int8) return static_cast<std::int8_t>(std::to_integer<int>(*from));
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return static_cast<double>(kKind == bf16 ? bf16_to_float(bits) : fp16_to_float(bits));
}

// At most 32 rows (or columns) of at most 32 of K: 1024 values, as the largest instruction has.
using Dense = std::array<double, 1024>;

// Calls body(lane, row or column, element or sum, its place along the other dimension) for each
// register element: what `dealt` says, without a division for each.
template <typename Body>
void for_each_dealt(const MatrixInstruction& m, int count, int run, const Body& body) {
  for (int lane = 0; lane < m.lanes; ++lane) {
    const int line = lane % m.dim, group = lane / m.dim;
    int place = group * run;
    for (int i = 0; i < count; place += run * m.groups()) {
      for (int j = 0; j < run; ++j, ++i) body(lane, line, i, place + j);
    }
  }
}

// One operand as [k][row].
template <ElementKind kKind>
void spread(const MatrixInstruction& m, std::span<const LaneRegisters> lanes,
            std::array<std::byte, 16> LaneRegisters::*operand, bool fnuz, Dense& to) {
  static const auto fp8_values = decoded_fp8();
  const std::array<double, 256>& values = fp8_values[fnuz ? 1 : 0];
  constexpr int bytes = kKind == bf16 || kKind == fp16 ? 2 : 1;
  const auto dim = static_cast<std::size_t>(m.dim);
  for_each_dealt(m, m.elements(), m.operand_run, [&](int lane, int row, int i, int k) {
    const std::byte* from = (lanes[static_cast<std::size_t>(lane)].*operand).data() + i * bytes;
    to[static_cast<std::size_t>(k) * dim + static_cast<std::size_t>(row)] =
        decode<kKind>(from, values);
  });
}

// C + sum, rounded as the instruction's sums are.
template <ElementKind kKind>
void add(std::byte* c, double sum) {
  if constexpr (kKind == int8) {
    std::uint32_t value;
    std::memcpy(&value, c, sizeof value);
    value += static_cast<std::uint32_t>(static_cast<std::int64_t>(sum));
    std::memcpy(c, &value, sizeof value);
  } else {
    float value;
    std::memcpy(&value, c, sizeof value);
    value = static_cast<float>(static_cast<double>(value) + sum);
    std::memcpy(c, &value, sizeof value);
  }
}

// A row of products stays in registers.
template <std::size_t kDim>
void multiply(const Dense& a, const Dense& b, std::size_t k, Dense& products) {
  for (std::size_t row = 0; row < kDim; ++row) {
    std::array<double, kDim> sums = {};
    for (std::size_t j = 0; j < k; ++j) {
      const double factor = a[j * kDim + row];
      for (std::size_t column = 0; column < kDim; ++column)
        sums[column] += factor * b[j * kDim + column];
    }
    std::copy(sums.begin(), sums.end(), products.begin() + row * kDim);
  }
}

template <ElementKind kKind>
void run_on(const MatrixInstruction& m, std::span<LaneRegisters> lanes, bool fnuz) {
  Dense a, b, products;
  spread<kKind>(m, lanes, &LaneRegisters::a, fnuz, a);
  spread<kKind>(m, lanes, &LaneRegisters::b, fnuz, b);
  const auto k = static_cast<std::size_t>(m.k), dim = static_cast<std::size_t>(m.dim);
  m.dim == 16 ? multiply<16>(a, b, k, products) : multiply<32>(a, b, k, products);
  for_each_dealt(m, m.sums(), m.sum_run, [&](int lane, int column, int i, int row) {
    add<kKind>(lanes[static_cast<std::size_t>(lane)].sums.data() + 4 * i,
               products[static_cast<std::size_t>(row) * dim + static_cast<std::size_t>(column)]);
  });
}

}  // namespace

void MatrixInstruction::run(std::span<LaneRegisters> lanes_of_wave, bool fnuz) const {
  switch (element) {
    case fp8:
      return run_on<fp8>(*this, lanes_of_wave, fnuz);
    case int8:
      return run_on<int8>(*this, lanes_of_wave, fnuz);
    case bf16:
      return run_on<bf16>(*this, lanes_of_wave, fnuz);
    case fp16:
      return run_on<fp16>(*this, lanes_of_wave, fnuz);
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
