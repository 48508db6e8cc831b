#include "harness/judge/statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <vector>

#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> values(samples.begin(), samples.end());
  std::sort(values.begin(), values.end());
  return values;
}

double median_of_sorted(std::span<const double> values) {
  assert(!values.empty());
  const std::size_t middle = values.size() / 2;
  // Half of each, not half the sum: the sum of two large values may overflow.
  return values.size() % 2 == 1 ? values[middle] : values[middle - 1] / 2 + values[middle] / 2;
}

}  // namespace

double median(std::span<const double> samples) { return median_of_sorted(sorted(samples)); }

std::vector<double> round_means(std::span<const double> samples) {
  std::vector<double> means;
  for (std::size_t i = 0; i < samples.size(); i += 2) {
    const double last = samples[std::min(i + 1, samples.size() - 1)];
    means.push_back(samples[i] / 2 + last / 2);
  }
  return means;
}

double binomial_half_cdf(std::ptrdiff_t k, std::size_t n) {
  if (k < 0) return 0;
  if (static_cast<std::size_t>(k) >= n) return 1;
  // On logarithms, because 2^-n underflows from n = 1075 on.
  const double count = static_cast<double>(n);
  double log_term = -count * std::numbers::ln2;
  double sum = std::exp(log_term);
  for (std::ptrdiff_t i = 1; i <= k; ++i) {
    const double position = static_cast<double>(i);
    log_term += std::log((count - position + 1) / position);
    sum += std::exp(log_term);
  }
  return std::min(sum, 1.0);
}

MedianInterval median_interval(std::span<const double> samples, double confidence) {
  const std::vector<double> values = sorted(samples);
  assert(!values.empty());
  const std::size_t n = values.size();
  const auto coverage = [n](std::size_t k) {
    return 1 - 2 * binomial_half_cdf(static_cast<std::ptrdiff_t>(k) - 1, n);
  };
  std::size_t k = 1;
  while (k + 1 <= n / 2 && coverage(k + 1) >= confidence) ++k;
  return {.low = values[k - 1], .high = values[n - k], .coverage = std::max(0.0, coverage(k))};
}

std::optional<LogEstimate> log_median(std::span<const double> samples) {
  const bool usable = std::all_of(samples.begin(), samples.end(),
                                  [](double value) { return value > 0 && std::isfinite(value); });
  if (samples.size() < 2 || !usable) return std::nullopt;

  const std::vector<double> values = sorted(samples);
  // c = (n + 1) / 2 - sqrt(n), rounded to the nearest integer above 0: about two standard errors
  // from the median, where the interval's end points are still well inside the sample.
  const std::size_t n = values.size();
  const double count = static_cast<double>(n);
  const auto c =
      static_cast<std::size_t>(std::max(1.0, std::round((count + 1) / 2 - std::sqrt(count))));
  const double z = -normal_quantile(binomial_half_cdf(static_cast<std::ptrdiff_t>(c) - 1, n));
  return LogEstimate{.value = std::log(median_of_sorted(values)),
                     .standard_error = std::log(values[n - c] / values[c - 1]) / (2 * z)};
}

RatioInterval ratio_interval(const LogEstimate& a, const LogEstimate& b, double confidence,
                             double extra_standard_error) {
  const double z = normal_quantile((1 + confidence) / 2);
  const double half_width =
      z * std::hypot(a.standard_error, b.standard_error, extra_standard_error);
  const double log_ratio = a.value - b.value;
  return {.ratio = std::exp(log_ratio),
          .low = std::exp(log_ratio - half_width),
          .high = std::exp(log_ratio + half_width)};
}

double geometric_mean(std::span<const double> values) {
  assert(!values.empty());
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace moegauge
