// Distances between a kernel's output and the truth (design: relative L2 ||a-b|| / ||b||, never
// alone: one bad row among 8192 moves the total by 0.011 only).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/layer.h"

namespace moegauge {

// Of the elements compared, see measure_error. A distance is infinite where it has no finite value:
// the reference is all zero and the output is not, or the output is non-finite somewhere.
struct ErrorMetrics {
  std::int64_t rows = 0;  // compared; where there are none, no other number says anything
  double relative_l2 = 0;
  double worst_token = 0;             // the largest per-row relative L2
  std::int64_t worst_token_row = -1;  // the first row that has it; -1 if nothing was compared
  double max_scaled = 0;              // max |a - b| / magnitude
  double cosine = 1;                  // 1 where both are all zero, 0 where one is
  double matched = 1;  // fraction of elements equal to b rounded to the output dtype (0 equals -0)
  // Outputs that are NaN, or infinite where the reference is far from overflowing, or not NaN where
  // it is NaN.
  std::int64_t non_finite = 0;
  // Flat index of the first such; else the start of the worst token's row; none if all are equal.
  std::optional<std::int64_t> first_bad;
};

// a [rows, cols]: output of elements `dtype`, decoded to double. Row r of a is compared with row
// pool[r] of b and magnitude [pool rows, cols]; an empty `pool` is the identity. Rows with
// not_compared[pool row] are left out; an empty `not_compared` leaves out none. Where b is NaN, a
// must be NaN too, and such a row counts for nothing else.
//
// An output that overflows `dtype` is a value like any other: on both sides an infinity, and any
// magnitude from overflow_threshold on, counts as that threshold, the least that an infinity can
// stand for. A kernel that overflows where the truth does is at distance 0, one that saturates at
// fp16's 65504 at 16 / 65520, and one that overflows a rounding early at as little; but an infinity
// where the truth is more than a sixteenth below the threshold is no matter of rounding, and is
// counted in non_finite.
ErrorMetrics measure_error(std::span<const double> a, std::span<const double> b,
                           std::span<const double> magnitude, std::int64_t rows, std::int64_t cols,
                           std::span<const std::int32_t> pool, Dtype dtype,
                           std::span<const std::uint8_t> not_compared = {});

}  // namespace moegauge
