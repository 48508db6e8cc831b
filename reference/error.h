// Distances between a kernel's output and the truth (design: relative L2 ||a-b|| / ||b||, never
// alone: one bad row among 8192 moves the total by 0.011 only).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace moegauge {

struct ErrorMetrics {
  // Infinite where the reference is all zero and the output is not.
  double relative_l2 = 0;
  double worst_token = 0;         // the largest per-row relative L2
  std::int64_t worst_token_row = -1;
  double max_scaled = 0;          // max |a - b| / magnitude
  double cosine = 1;
  double matched = 1;             // fraction of elements with equal bits after rounding b to the output dtype
  std::int64_t non_finite = 0;    // outputs that are NaN or infinite where the reference is finite
  std::optional<std::int64_t> first_bad;  // flat index of the first such, or of the largest deviation's row start
};

// a [rows, cols]: kernel output decoded to double. Row r of a is compared with row pool[r] of b
// (an empty `pool` is the identity). Rows in which b holds an infinity are not compared; rows in
// which b is NaN must be NaN in a.
ErrorMetrics measure_error(std::span<const double> a, std::span<const double> b,
                           std::span<const double> magnitude, std::int64_t rows, std::int64_t cols,
                           std::span<const std::int32_t> pool);

}  // namespace moegauge
