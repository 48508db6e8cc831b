// Which rows of a matrix the layer kernel's tiles of 256 hold: of w13 128 gate rows and then the
// 128 up rows that go with them, of w2 256 in turn.
#pragma once

#include <cstdint>

#include "kernels/nvidia/device/box_layout.h"
#include "reference/schemes/scheme.h"

namespace moegauge::cuda {

constexpr std::int64_t tile_rows = moe::kTileRows, box_rows = moe::kBoxRows;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t align_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

// N as the kernels know it: what is past the layer's own holds zeros.
constexpr std::int64_t padded_inter(const Layer& layer) {
  return align_up(layer.intermediate_size, 64);
}

// Rows of a tile that share one block scale: 64, the rows of a matrix instruction, unless the
// blocks of up begin elsewhere.
constexpr std::int64_t scale_rows(std::int64_t inter, GateUpOrder order) {
  return order == GateUpOrder::concatenated && inter % 64 != 0 ? 8 : 64;
}
constexpr std::int64_t scale_rows(const MatrixShape& shape) {
  return scale_rows(shape.role == Role::w13 ? shape.rows / 2 : shape.cols, shape.gate_up_order);
}

// Rows that a box of a tile is cut from: gate's, up's, or all of w2.
constexpr std::int64_t part_rows(const MatrixShape& shape) {
  return shape.role == Role::w13 ? shape.rows / 2 : shape.rows;
}
constexpr std::int64_t tile_count(const MatrixShape& shape) {
  return ceil_div(part_rows(shape), shape.role == Role::w13 ? box_rows : tile_rows);
}

// The row within its part (gate, up, or all of w2); -1 outside the matrix.
constexpr std::int64_t part_row(const MatrixShape& shape, std::int64_t tile, std::int64_t in_tile) {
  const std::int64_t row =
      shape.role == Role::w13 ? tile * box_rows + in_tile % box_rows : tile * tile_rows + in_tile;
  return row < part_rows(shape) ? row : -1;
}
constexpr bool is_up(const MatrixShape& shape, std::int64_t in_tile) {
  return shape.role == Role::w13 && in_tile >= box_rows;
}

// The row of the matrix in canonical storage.
constexpr std::int64_t canonical_row(const MatrixShape& shape, std::int64_t row, bool up) {
  if (shape.role == Role::w2 || row < 0) return row;
  return shape.gate_up_order == GateUpOrder::interleaved ? 2 * row + (up ? 1 : 0)
                                                         : row + (up ? shape.rows / 2 : 0);
}

}  // namespace moegauge::cuda
