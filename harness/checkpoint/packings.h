// How checkpoints lay one matrix y = W x down, read into Unpacked. Each reader is given rows
// [begin, end) and how many of the leading columns are wanted; tensors have been checked before.
#pragma once

#include <cstdint>

#include "harness/checkpoint/slab.h"
#include "harness/checkpoint/unpacked.h"

namespace moegauge {

struct Extent {
  std::int64_t begin = 0, end = 0;  // rows
  std::int64_t cols = 0;            // from the first on
  bool codes = true;                // or only scales and zero points, of integers in groups
};

// weight [rows, cols], or [cols, rows] where `transposed`; BF16, F16 or F32.
Unpacked read_plain(const Slab& weight, bool transposed, const Extent& extent);

// One byte per element, weight [rows, cols]; scale [ceil(rows / unit.rows), ceil(cols /
// unit.cols)], 0 standing for all.
Unpacked read_bytes(const Slab& weight, const Slab& scale, const ScaleUnit& unit,
                    const Extent& extent);

// Group-quantised integers of `bits` bits.
struct Groups {
  int bits = 4;
  std::int64_t group = 128;  // columns; 0: all
};

// compressed-tensors: weight_packed I32 [rows, ceil(cols / per word)], weight_scale [rows, groups],
// weight_zero_point I32 [ceil(rows / per word), groups], weight_g_idx I32 [cols]; the lowest bits
// first; codes and zero points stored with half the range added.
struct CompressedSlabs {
  Slab weight, scale, zero_point, group_index;  // the last two may be absent
};
Unpacked read_compressed(const CompressedSlabs& slabs, const Groups& groups, const Extent& extent);

// GPTQ: qweight I32 [cols / per word, rows], qzeros I32 [groups, rows / per word], scales [groups,
// rows], g_idx I32 [cols]; the lowest bits first. `zeros_less_one`: version 1 stores zero points
// minus 1, modulo the range.
struct GptqSlabs {
  Slab weight, zeros, scale, group_index;  // the last may be absent
  bool zeros_less_one = true;
};
Unpacked read_gptq(const GptqSlabs& slabs, const Groups& groups, const Extent& extent);

// AWQ, 4 bits: qweight I32 [cols, rows / 8], qzeros I32 [groups, rows / 8], both in the order 0, 2,
// 4, 6, 1, 3, 5, 7 within a word; scales [groups, rows].
struct AwqSlabs {
  Slab weight, zeros, scale;
};
Unpacked read_awq(const AwqSlabs& slabs, const Groups& groups, const Extent& extent);

// gpt-oss: blocks U8 [rows, cols / 32, 16], low nibble first; scales U8 [rows, cols / 32], E8M0.
Unpacked read_mxfp4(const Slab& blocks, const Slab& scales, const Extent& extent);

}  // namespace moegauge
