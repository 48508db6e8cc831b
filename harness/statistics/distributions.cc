#include "harness/statistics/distributions.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

double log_beta(double a, double b) { return std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b); }

// Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = d;
  for (int m = 1; m <= 2000; ++m) {
    const double n = m;
    const double even = n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return fraction;
}

// The x in [low, high] where the falling `function` reaches `value`.
template <typename Function>
double bisect_falling(Function function, double value, double low, double high) {
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low / 2 + high / 2;
    if (middle == low || middle == high) break;
    (function(middle) > value ? low : high) = middle;
  }
  return low / 2 + high / 2;
}

}  // namespace

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(a * std::log(x) + b * std::log1p(-x) - log_beta(a, b));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double normal_upper_tail(double z) { return std::erfc(z / std::numbers::sqrt2) / 2; }

double student_upper_tail(double t, double degrees_of_freedom) {
  // Beyond, the difference from the normal is below the accuracy promised.
  if (degrees_of_freedom > 1e10) return normal_upper_tail(t);
  const double squared = t * t;
  const double tail = incomplete_beta(degrees_of_freedom / 2, 0.5,
                                      degrees_of_freedom / (degrees_of_freedom + squared)) /
                      2;
  return t >= 0 ? tail : 1 - tail;
}

double student_upper_quantile(double p, double degrees_of_freedom) {
  if (p > 0.5) return -student_upper_quantile(1 - p, degrees_of_freedom);
  if (degrees_of_freedom > 1e10) return -normal_quantile(p);
  const auto tail = [&](double t) { return student_upper_tail(t, degrees_of_freedom); };
  double high = 2;
  while (tail(high) > p && high < 1e300) high *= 2;
  return bisect_falling(tail, p, 0, high);
}

double digamma(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum -= 1 / x;
  const double r = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * 5.0 / 660))));
}

double trigamma(double x) {
  double sum = 0;
  for (; x < 10; ++x) sum += 1 / (x * x);
  const double r = 1 / (x * x);
  return sum + 1 / x + r / 2 +
         r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r * (1.0 / 30 - r * 5.0 / 66))));
}

double trigamma_inverse(double y) {
  if (y > 1e7) return 1 / std::sqrt(y);
  if (y < 1e-6) return 1 / y;
  double x = 0.5 + 1 / y;
  for (int i = 0; i < 60; ++i) {
    const double value = trigamma(x);
    // psi''(x) from the series' derivative, by a difference: only the speed depends on it.
    const double h = x * 1e-4;
    const double slope = (trigamma(x + h) - trigamma(x - h)) / (2 * h);
    const double step = value * (1 - value / y) / slope;
    x += step;
    if (std::abs(step) < 1e-12 * x) break;
  }
  return x;
}

double binomial_upper_limit(std::size_t events, std::size_t trials, double confidence) {
  if (events >= trials) return 1;
  const double k = static_cast<double>(events), n = static_cast<double>(trials);
  // P(X <= k) = I_{1-p}(n - k, k + 1) falls in p.
  return bisect_falling([&](double p) { return incomplete_beta(n - k, k + 1, 1 - p); },
                        1 - confidence, 0, 1);
}

double binomial_lower_limit(std::size_t events, std::size_t trials, double confidence) {
  return 1 - binomial_upper_limit(trials - events, trials, confidence);
}

}  // namespace moegauge
