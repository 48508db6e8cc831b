#include "harness/statistics/moderated.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/statistics/distributions.h"

namespace moegauge {

std::optional<Variance> fit_variance_prior(std::span<const Variance> variances) {
  std::vector<Variance> used;
  std::vector<double> values;
  for (const Variance& v : variances) {
    if (!(v.degrees_of_freedom >= 1) || !std::isfinite(v.value) || v.value < 0) continue;
    used.push_back(v);
    values.push_back(v.value);
  }
  if (used.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double least = std::max(*middle * 1e-5, 1e-300);

  double sum = 0, sum_of_squares = 0, sampling = 0;
  const double count = static_cast<double>(used.size());
  double known_half = -1, bias = 0,
         noise = 0;  // most cases have the degrees of freedom of the last
  for (const Variance& v : used) {
    const double half = v.degrees_of_freedom / 2;
    if (half != known_half) {
      known_half = half;
      bias = std::log(half) - digamma(half);
      noise = trigamma(half);
    }
    const double e = std::log(std::max(v.value, least)) + bias;
    sum += e;
    sum_of_squares += e * e;
    sampling += noise;
  }
  const double mean = sum / count;
  // Of one variance nothing shows how unlike others are; it is then its own prior, and no more.
  if (used.size() == 1) return Variance{used[0].value, 0};
  const double spread = (sum_of_squares - count * mean * mean) / (count - 1) - sampling / count;
  if (!(spread > 0)) {
    return Variance{std::exp(mean), std::numeric_limits<double>::infinity()};
  }
  const double half = trigamma_inverse(spread);
  return Variance{std::exp(mean + digamma(half) - std::log(half)), 2 * half};
}

Variance moderate(const Variance& own, const std::optional<Variance>& prior, double most) {
  if (!prior) return own;
  const double d0 = std::min(prior->degrees_of_freedom, most);
  if (std::isinf(d0) || own.degrees_of_freedom == 0) return {prior->value, d0};
  return pool({prior->value, d0}, own);
}

Variance pool(const Variance& a, const Variance& b) {
  const double df = a.degrees_of_freedom + b.degrees_of_freedom;
  if (df == 0) return a;
  if (std::isinf(a.degrees_of_freedom)) return a;
  if (std::isinf(b.degrees_of_freedom)) return b;
  return {(a.degrees_of_freedom * a.value + b.degrees_of_freedom * b.value) / df, df};
}

}  // namespace moegauge
