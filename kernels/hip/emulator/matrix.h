// What the matrix instructions compute: D = A B + C over a wave's registers, for the layouts that
// AMD documents (docs/amd.md says which were checked against what).
//
// Operands are exact, products are summed in fp64 and rounded once to fp32 when they are added to
// C. What order the hardware sums in, and with how many bits, is not documented.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/hip/emulator/gpu.h"

namespace moegauge::emulator {

// A lane's registers while its wave does something together.
struct LaneRegisters {
  alignas(16) std::array<std::byte, 16> a, b;
  alignas(16) std::array<std::byte, 64> sums;
  std::uint32_t value;  // of a shuffle
};

enum class ElementKind : std::uint8_t { fp8, int8, bf16, fp16 };

// dim x k times k x dim. A's row and B's column of a lane are lane % dim. Along the other dimension
// lanes with the same one take turns, `run` elements at a time.
struct MatrixInstruction {
  const char* name;  // as the disassembler spells it
  ElementKind element;
  int lanes, dim, k;
  int operand_run;  // elements of K
  int sum_run;      // rows of D

  int element_bytes() const {
    return element == ElementKind::bf16 || element == ElementKind::fp16 ? 2 : 1;
  }
  int groups() const { return lanes / dim; }
  int elements() const { return k / groups(); }  // of A and of B in a lane
  int sums() const { return dim * dim / lanes; }
  // Of register element i of a lane.
  int operand_k(int lane, int i) const { return dealt(lane, i, operand_run); }
  int sum_row(int lane, int i) const { return dealt(lane, i, sum_run); }

  // `fnuz`: FP8 in AMD's own flavour.
  void run(std::span<LaneRegisters> lanes_of_wave, bool fnuz) const;

 private:
  int dealt(int lane, int i, int run) const {
    return i / run * (run * groups()) + lane / dim * run + i % run;
  }
};

const MatrixInstruction& instruction(moe::gpu::Instruction which);

// For tests: until it is destroyed, `which` does what `instead` says.
class InsteadOf {
 public:
  InsteadOf(moe::gpu::Instruction which, const MatrixInstruction& instead);
  ~InsteadOf();
  InsteadOf(const InsteadOf&) = delete;
  InsteadOf& operator=(const InsteadOf&) = delete;
};

}  // namespace moegauge::emulator
