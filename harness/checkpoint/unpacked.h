// Weights between a checkpoint's packing and a scheme's canonical storage: one element per byte,
// with the scale of each row's units beside them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/schemes/scheme.h"

namespace moegauge {

// Rows of a matrix. Either `values` (weights that are not quantised) or the rest.
struct Unpacked {
  std::int64_t rows = 0, cols = 0;
  std::vector<float> values = {};           // [rows, cols]
  std::vector<std::uint8_t> codes = {};     // [rows, cols]
  std::int64_t unit_cols = 0;               // columns that share a scale; 0: all
  std::int64_t units = 0;                   // scales of a row
  std::vector<float> scales = {};           // [rows, units]
  std::vector<std::uint8_t> zeros = {};     // [rows, units]; empty: the element's own middle
  std::vector<std::int32_t> group_of = {};  // [cols], where columns of a group are scattered

  bool plain() const { return !values.empty(); }
  float scale(std::int64_t row, std::int64_t unit) const {
    return scales[static_cast<std::size_t>(row * units + unit)];
  }
  std::int64_t unit_of(std::int64_t col) const {
    if (!group_of.empty()) return group_of[static_cast<std::size_t>(col)];
    return unit_cols == 0 ? 0 : col / unit_cols;
  }
};

// Rows of `from` under those of `to`, which may be empty.
void append(Unpacked& to, const Unpacked& from);

// What the rows stand for, [rows, cols].
std::vector<float> dequantize(const Unpacked& rows, const OperandTraits& weight);

// A whole matrix in the scheme's canonical storage. Where one scale unit of the scheme has rows of
// several scales (gate and up of one tensor scale; a block of 128 rows that holds the last of gate
// and the first of up), it gets the largest, and the other rows are requantised to it.
void store_canonical(const Unpacked& matrix, const Scheme& scheme, const Matrix& out);

}  // namespace moegauge
