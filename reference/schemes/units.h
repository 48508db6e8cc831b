// For the files of this folder: scale units over a row-major matrix, and the dynamic scale rule
// that all but the integer group schemes share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/base/integers.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

// A matrix cut into units of unit.rows x unit.cols, the last ones ragged; 0 is the whole extent.
struct UnitGrid {
  std::int64_t rows, cols;
  ScaleUnit unit;

  UnitGrid(std::int64_t matrix_rows, std::int64_t matrix_cols, const ScaleUnit& u)
      : rows(matrix_rows),
        cols(matrix_cols),
        unit{u.rows == 0 ? std::max<std::int64_t>(rows, 1) : u.rows,
             u.cols == 0 ? std::max<std::int64_t>(cols, 1) : u.cols} {}

  std::int64_t down() const { return ceil_div(rows, unit.rows); }
  std::int64_t across() const { return ceil_div(cols, unit.cols); }
  std::size_t count() const { return static_cast<std::size_t>(down() * across()); }
};

// A rectangle of a row-major matrix.
struct Rectangle {
  std::int64_t row, row_end, col, col_end;
};

// fn(index of the unit, its rectangle), row of units by row of units.
template <typename Fn>
void for_each_unit(const UnitGrid& grid, Fn&& fn) {
  std::size_t index = 0;
  for (std::int64_t row = 0; row < grid.rows; row += grid.unit.rows) {
    for (std::int64_t col = 0; col < grid.cols; col += grid.unit.cols) {
      fn(index++, Rectangle{row, std::min(row + grid.unit.rows, grid.rows), col,
                            std::min(col + grid.unit.cols, grid.cols)});
    }
  }
}

// fn(flat index) for each element of the rectangle.
template <typename Fn>
void for_each_element(const UnitGrid& grid, const Rectangle& r, Fn&& fn) {
  for (std::int64_t row = r.row; row < r.row_end; ++row) {
    for (std::int64_t col = r.col; col < r.col_end; ++col) {
      fn(static_cast<std::size_t>(row * grid.cols + col));
    }
  }
}

// Largest magnitude in the rectangle; elements that are not finite do not count.
float finite_amax(std::span<const float> x, const UnitGrid& grid, const Rectangle& r);

// The floor of amax under which a unit counts as zeros; engines use it so that the scale of a unit
// of zeros is positive and that of denormals does not overflow their quotients.
inline constexpr float kAmaxFloor = 1e-10f;

// The rule that most schemes share.
inline constexpr ScaleRule kFlooredAmax = {.amax_floor = kAmaxFloor};

// Canonical parts are bytes; those of 2 and 4 bytes are aligned by whoever allocates them.
template <typename T>
std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T>
std::span<const T> as(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace moegauge
