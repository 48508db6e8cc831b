// Where integer weights lie in memory for the layer kernel, which reads each thread's share of a
// matrix instruction with 16-byte loads. Compiled by host and device.
//
// A matrix is cut into tiles of 256 rows (gate/up: 128 gate rows, then the 128 up rows that go with
// them) and steps of 128 columns of K. Each (expert, tile, step) is one contiguous chunk: the
// codes, the 16-bit scales of the step's groups, their zero points as bytes. What lies outside the
// matrix has its group's zero point as code. MXFP4 is the same with E2M1 codes and scales in bf16.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

constexpr int kIntRows = 256, kIntStep = 128;

struct IntElement {
  int row, column;  // within the tile and the step
};

MOE_BOTH constexpr int int_code_bytes(int bits) { return kIntRows * kIntStep * bits / 8; }
MOE_BOTH constexpr int int_chunk_bytes(int bits, int group, bool zero_points) {
  return int_code_bytes(bits) + kIntStep / group * kIntRows * (zero_points ? 3 : 2);
}

// Rows come in blocks of 16, a warp's share of a 64-row instruction; K in pieces of 64, four
// instructions. 32 lanes of 16 bytes make a line: four-bit codes of a (block, piece) one, eight-bit
// codes two. A 32-bit word holds the codes of one instruction for one lane (eight-bit: of half of
// one). Code `slot` of word `word`; register r and half c as in Wgmma::bf16_registers.
MOE_BOTH constexpr IntElement int_element(int bits, int word, int slot) {
  const int lines = bits / 4, per_piece = lines * 128;
  const int block = word / (2 * per_piece), piece = word / per_piece % 2, line = word / 128 % lines;
  const int lane = word / 4 % 32, within = word % 4;
  const int instruction = bits == 4 ? within : 2 * line + within / 2;
  const int r = bits == 4 ? slot % 4 : within % 2 * 2 + slot / 2,
            c = bits == 4 ? slot / 4 : slot % 2;
  return {block * 16 + lane / 4 + 8 * (r % 2),
          piece * 64 + instruction * 16 + r / 2 * 8 + lane % 4 * 2 + c};
}

// Place of a row's scale (or zero point) among the 256 of a group: a thread's two rows of both
// 128-row boxes lie together.
MOE_BOTH constexpr int int_scale_place(int row) {
  const int box = row / 128, block = row / 16 % 8, r = row % 16;
  return (block * 8 + r % 8) * 4 + box * 2 + r / 8;
}

}  // namespace moe
