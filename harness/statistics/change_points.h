// Where a series changed its level: E-divisive of D. S. Matteson and N. A. James (J. Am. Stat.
// Assoc. 109 (2014) 334-345), on ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace moegauge {

struct ChangePointSearch {
  double level = 0.001;            // of each permutation test
  std::size_t permutations = 999;  // at most: a test ends once it cannot be passed any more
  std::size_t least = 5;     // values between two changes, and before the first or after the last
  std::size_t window = 500;  // values looked at together; at most 2000
  std::uint64_t seed = 1;
};

struct ChangePoint {
  std::size_t at = 0;  // the first value of the new level
  double p = 1;        // of its permutation test
};

// In order. A stretch is split where the energy statistic m k / (m + k) * E(left, right) of its two
// parts is largest, if no more than `level` of random orders of the stretch reach as much; then so
// are both parts. Distances are of ranks within the stretch, so that an outlier is one rank like
// any other and neither hides a change nor makes one, and the test is exact for any noise whose
// order says nothing. A series longer than the window is looked at in windows that overlap by half;
// each decides on its middle half. The same values always give the same answer.
std::vector<ChangePoint> change_points(std::span<const double> values,
                                       const ChangePointSearch& search = {});

}  // namespace moegauge
