#include "harness/statistics/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace moegauge {
namespace {

// Closed forms: I_x(1, 1) = x; I_x(2, 3) = x^2 (6 - 8 x + 3 x^2); I_x(1/2, 1/2) = 2/pi asin(sqrt
// x).
TEST(IncompleteBeta, MatchesItsClosedForms) {
  for (const double x : {0.001, 0.2, 0.5, 0.77, 0.999}) {
    EXPECT_NEAR(incomplete_beta(1, 1, x), x, 1e-14);
    EXPECT_NEAR(incomplete_beta(2, 3, x), x * x * (6 - 8 * x + 3 * x * x), 1e-13);
    EXPECT_NEAR(incomplete_beta(0.5, 0.5, x), 2 / std::numbers::pi * std::asin(std::sqrt(x)),
                1e-12);
  }
  EXPECT_EQ(incomplete_beta(2, 3, 0), 0);
  EXPECT_EQ(incomplete_beta(2, 3, 1), 1);
}

// 1 degree of freedom is Cauchy's: 1/2 - atan(t)/pi. 2 have 1/2 - t / (2 sqrt(2 + t^2)).
TEST(StudentTail, MatchesTheClosedFormsOfOneAndTwoDegreesOfFreedom) {
  for (const double t : {-3.0, -0.5, 0.0, 0.1, 1.0, 12.0}) {
    EXPECT_NEAR(student_upper_tail(t, 1), 0.5 - std::atan(t) / std::numbers::pi, 1e-12);
    EXPECT_NEAR(student_upper_tail(t, 2), 0.5 - t / (2 * std::sqrt(2 + t * t)), 1e-12);
  }
}

// Of the usual printed table: t for one-sided 2.5%, 0.5% and 0.05%.
TEST(StudentQuantile, MatchesThePrintedTable) {
  EXPECT_NEAR(student_upper_quantile(0.025, 10), 2.228, 5e-4);
  EXPECT_NEAR(student_upper_quantile(0.005, 5), 4.032, 5e-4);
  EXPECT_NEAR(student_upper_quantile(0.0005, 15), 4.073, 5e-4);
  EXPECT_NEAR(student_upper_quantile(0.025, 1e12), 1.959964, 1e-6);
  EXPECT_NEAR(student_upper_quantile(0.975, 10), -2.228, 5e-4);
}

TEST(StudentQuantile, IsTheInverseOfTheTailFarOut) {
  for (const double df : {1.0, 3.5, 15.0, 75.0, std::numeric_limits<double>::infinity()}) {
    for (const double p : {1e-9, 6e-6, 0.01, 0.3}) {
      EXPECT_NEAR(student_upper_tail(student_upper_quantile(p, df), df) / p, 1, 1e-8) << df << p;
    }
  }
}

// psi(1) = -gamma, psi(1/2) = -gamma - 2 ln 2; psi'(1) = pi^2/6, psi'(1/2) = pi^2/2.
TEST(Polygamma, MatchesItsKnownValues) {
  constexpr double gamma = std::numbers::egamma, pi = std::numbers::pi;
  EXPECT_NEAR(digamma(1), -gamma, 1e-12);
  EXPECT_NEAR(digamma(0.5), -gamma - 2 * std::numbers::ln2, 1e-12);
  EXPECT_NEAR(trigamma(1), pi * pi / 6, 1e-12);
  EXPECT_NEAR(trigamma(0.5), pi * pi / 2, 1e-12);
  for (const double x : {0.01, 0.4, 3.0, 250.0, 1e5}) {
    EXPECT_NEAR(trigamma_inverse(trigamma(x)) / x, 1, 1e-6) << x;
  }
}

// No event in n trials: 1 - 0.05^(1/n). The first example of every table: 0 of 299 bound 1%.
TEST(BinomialLimit, OfNoEventIsTheRuleOfThree) {
  EXPECT_NEAR(binomial_upper_limit(0, 299, 0.95), 1 - std::pow(0.05, 1.0 / 299), 1e-9);
  EXPECT_LT(binomial_upper_limit(0, 299, 0.95), 0.01);
  EXPECT_NEAR(binomial_lower_limit(299, 299, 0.95), std::pow(0.05, 1.0 / 299), 1e-9);
  EXPECT_EQ(binomial_upper_limit(7, 7, 0.95), 1);
}

// At the limit p, at most k events have a chance of 5%: summed here term by term.
TEST(BinomialLimit, LeavesFivePercentBelow) {
  const double p = binomial_upper_limit(3, 40, 0.95);
  double sum = 0;
  for (int k = 0; k <= 3; ++k) {
    const double choose = std::exp(std::lgamma(41) - std::lgamma(k + 1) - std::lgamma(41 - k));
    sum += choose * std::pow(p, k) * std::pow(1 - p, 40 - k);
  }
  EXPECT_NEAR(sum, 0.05, 1e-9);
}

}  // namespace
}  // namespace moegauge
