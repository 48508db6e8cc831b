#include "reference/schemes/units.h"

#include <bit>

#include "reference/base/clones.h"

namespace moegauge {
namespace {

// Magnitudes compare as their bits do.
MOEGAUGE_CLONES std::int32_t largest_bits(const float* x, std::int64_t n, std::int32_t most) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(x[i]) & 0x7FFF'FFFF;
    const std::int32_t counted = bits < 0x7F80'0000 ? bits : 0;
    most = most < counted ? counted : most;
  }
  return most;
}

}  // namespace

float finite_amax(std::span<const float> x, const UnitGrid& grid, const Rectangle& r) {
  std::int32_t most = 0;
  for (std::int64_t row = r.row; row < r.row_end; ++row) {
    most = largest_bits(x.data() + row * grid.cols + r.col, r.col_end - r.col, most);
  }
  return std::bit_cast<float>(most);
}

}  // namespace moegauge
