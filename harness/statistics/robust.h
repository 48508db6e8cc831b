// Location, spread and tests of a few values of which one or two may be far off: a process that ran
// beside a neighbour's job, a clock that settled elsewhere.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "harness/statistics/moderated.h"

namespace moegauge {

// A centre, and the variance that one value has, so that the centre's is variance / n. From 8
// values on the M-estimate of P. J. Huber (Robust Statistics, 1981, sections 3.2 and 6.4) whose
// influence is bounded at twice the scale: on normal values it costs 1% of the mean's precision, on
// two clocks nothing, and an outlier counts as two standard deviations. Scale: the Winsorised one
// of J. W. Tukey and D. H. McLaughlin (Sankhya A 25 (1963) 331-352) with an eighth at each end.
// Below 8 values mean and sample variance. A single value has a variance of 0 with 0 degrees of
// freedom. Requires a value.
struct Location {
  double value = 0;
  Variance variance = {};
};
Location robust_location(std::span<const double> values);
// The same at a scale that is known from elsewhere (the standard deviation of one value), which
// also bounds what one of three or four values can do. Requires a scale above 0.
Location robust_location(std::span<const double> values, double scale);
inline constexpr std::size_t least_for_robust = 8;

// P(W+ >= observed) of the signed-rank statistic where every value is as likely positive as
// negative (F. Wilcoxon, Biometrics Bulletin 1 (1945) 80-83): exact, by counting, given the ranks;
// ties share their mean rank; zeros are left out. 1 for no values. Requires at most 1000.
double signed_rank_upper_p(std::span<const double> values);

// The Hodges-Lehmann estimate and its distribution-free interval: the median of all means of two
// values (each with itself too), and their order statistics that the signed-rank test would not
// reject (J. L. Hodges and E. L. Lehmann, Ann. Math. Stat. 34 (1963) 598-611; M. Hollander and D.
// A. Wolfe, Nonparametric Statistical Methods, 2nd ed., 1999, sections 3.2 and 3.3). None for fewer
// than ten values: below, its levels are too coarse.
inline constexpr std::size_t least_for_ranks = 10;
struct RankInterval {
  double value = 0, low = 0, high = 0;
  double coverage = 0;
};
std::optional<RankInterval> hodges_lehmann(std::span<const double> values, double confidence);

}  // namespace moegauge
