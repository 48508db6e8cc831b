// The few statistics that verdicts rest on. Distribution-free where that costs nothing: latencies
// are skewed, so medians and order statistics, never means and standard deviations of raw samples.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace moegauge {

// Middle value, or the mean of the middle two. Requires at least one sample.
double median(std::span<const double> samples);

// P(X <= k) for X ~ Binomial(n, 1/2); 0 for k < 0.
double binomial_half_cdf(std::ptrdiff_t k, std::size_t n);

// What is independent in a latency's samples, in the order measured: the means of consecutive
// pairs. A round holds two rows of each member (harness/measure/rounds.h), which share what the
// machine did meanwhile, so that they are not two pieces of evidence. A lone last sample stands for
// itself.
std::vector<double> round_means(std::span<const double> samples);

// Nominal confidence of the interval that decides when enough was measured and is then reported.
// Looking at it after every round makes it miss the median more often than a look at the end would,
// up to twice: 98% keep at least 95% (docs/method.md, rounds_test.cc).
inline constexpr double kSequentialConfidence = 0.98;

struct MedianInterval {
  double low = 0, high = 0;
  double coverage = 0;  // exact, and at least what was asked for unless there are too few samples
};

// [x_(k), x_(n+1-k)] for the largest k whose coverage 1 - 2 P(Bin(n, 1/2) <= k-1) is at least
// `confidence` (David and Nagaraja, Order Statistics, 2003, section 7.1). Exact for any continuous
// distribution. Where even [min, max] covers less (n <= 5 at 0.95), [min, max] with what it covers.
// Requires at least one sample.
MedianInterval median_interval(std::span<const double> samples, double confidence);

// A natural logarithm with its standard error: ratios are judged on this scale, where slower by
// a factor and faster by the same factor lie equally far from 0.
struct LogEstimate {
  double value = 0;
  double standard_error = 0;
};

// ln of the median of positive samples; the standard error from the distance between two order
// statistics about the median (Price and Bonett, J. Stat. Comput. Simul. 72 (2002) 119-124;
// Bonett and Price, J. Educ. Behav. Stat. 45 (2020) 750-770). None
// for fewer than 2 samples, or any that is not positive and finite.
std::optional<LogEstimate> log_median(std::span<const double> samples);

struct RatioInterval {
  double ratio = 1, low = 1, high = 1;
};

// exp(a - b) with the interval that covers it with `confidence`. `extra_standard_error` adds in
// quadrature what neither sample can show, such as the spread between processes.
RatioInterval ratio_interval(const LogEstimate& a, const LogEstimate& b, double confidence,
                             double extra_standard_error = 0);

// (prod values)^(1/n) over positive values: the only mean that does not depend on which side a
// ratio is normalised to (Fleming and Wallace, Commun. ACM 29 (1986) 218-221). Requires at least
// one value.
double geometric_mean(std::span<const double> values);

}  // namespace moegauge
