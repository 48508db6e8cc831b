#include "harness/judge/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

TEST(Median, IsTheMiddleValueOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{7}), 7);
}

TEST(Median, IsNotMovedByOneOutlier) {
  EXPECT_EQ(median(std::vector<double>{1, 2, 3, 4, 1e300}), 3);
}

TEST(Median, OfTwoHugeValuesDoesNotOverflow) {
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(median(std::vector<double>{huge, huge}), huge);
}

// Counted by hand: Bin(10, 1/2): (1 + 10) / 1024; Bin(5, 1/2): (1 + 5 + 10) / 32.
TEST(BinomialHalfCdf, MatchesCountsByHand) {
  EXPECT_DOUBLE_EQ(binomial_half_cdf(1, 10), 11.0 / 1024);
  EXPECT_DOUBLE_EQ(binomial_half_cdf(2, 5), 0.5);
  EXPECT_EQ(binomial_half_cdf(-1, 5), 0);
  EXPECT_EQ(binomial_half_cdf(5, 5), 1);
}

// By symmetry P(X <= n/2 - 1/2) = 1/2 for every odd n, also where 2^-n underflows.
TEST(BinomialHalfCdf, HoldsWhereTwoToTheMinusNUnderflows) {
  EXPECT_NEAR(binomial_half_cdf(5000, 10001), 0.5, 1e-9);
}

// Ranks and coverages of the usual table of distribution-free intervals for the median (Conover,
// Practical Nonparametric Statistics, and others), where each is a sum of binomial terms:
//   n  6: (1, 6)   1 - 2/64            = .96875
//   n  9: (2, 8)   1 - 2 (1 + 9)/512   = .9609375
//   n 10: (2, 9)   1 - 2 (11)/1024     = .978515625
//   n 15: (4, 12)  1 - 2 (576)/32768   = .96484375
//   n 20: (6, 15)  1 - 2 (21700)/2^20  = .958610534667969
TEST(MedianInterval, TakesTheRanksOfThePublishedTable) {
  struct Row {
    std::size_t n;
    double low, high, coverage;
  };
  for (const Row& row : {Row{6, 1, 6, 0.96875}, Row{9, 2, 8, 0.9609375}, Row{10, 2, 9, 0.978515625},
                         Row{15, 4, 12, 0.96484375}, Row{20, 6, 15, 0.958610534667969}}) {
    std::vector<double> ranks(row.n);
    std::iota(ranks.rbegin(), ranks.rend(), 1.0);
    const MedianInterval interval = median_interval(ranks, 0.95);
    EXPECT_EQ(interval.low, row.low) << row.n;
    EXPECT_EQ(interval.high, row.high) << row.n;
    EXPECT_NEAR(interval.coverage, row.coverage, 1e-12) << row.n;
  }
}

TEST(MedianInterval, SaysHowLittleFiveSamplesCover) {
  const MedianInterval interval = median_interval(std::vector<double>{5, 1, 4, 2, 3}, 0.95);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 5);
  EXPECT_NEAR(interval.coverage, 1 - 2.0 / 32, 1e-12);
}

TEST(MedianInterval, OfOneSampleCoversNothing) {
  EXPECT_EQ(median_interval(std::vector<double>{2}, 0.95).coverage, 0);
}

// n = 9: c = round(5 - 3) = 2; P(Bin(9, 1/2) <= 1) = 10/512 = .01953125, whose normal quantile is
// -2.063528. Samples exp(1), ..., exp(9): standard error (8 - 2) / (2 * 2.063528).
TEST(LogMedian, MatchesPriceAndBonettByHand) {
  std::vector<double> samples;
  for (int i = 9; i >= 1; --i) samples.push_back(std::exp(i));
  const auto estimate = log_median(samples);
  ASSERT_TRUE(estimate);
  EXPECT_NEAR(estimate->value, 5, 1e-12);
  EXPECT_NEAR(estimate->standard_error, 3 / 2.063528, 1e-6);
}

TEST(LogMedian, HasNoAnswerForOneSampleOrForWhatIsNoLatency) {
  EXPECT_FALSE(log_median(std::vector<double>{1}));
  EXPECT_FALSE(log_median(std::vector<double>{1, 0}));
  EXPECT_FALSE(log_median(std::vector<double>{1, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(log_median(std::vector<double>{1, std::nan("")}));
}

// Standard errors 0.3, 0.4 and 1.2 add to 1.3 (Pythagoras twice); 1.959964 * 1.3 = 2.547953.
TEST(RatioInterval, AddsStandardErrorsInQuadrature) {
  const RatioInterval interval = ratio_interval({std::log(6), 0.3}, {std::log(3), 0.4}, 0.95, 1.2);
  EXPECT_NEAR(interval.ratio, 2, 1e-12);
  EXPECT_NEAR(std::log(interval.high / 2), 2.547953, 1e-6);
  EXPECT_NEAR(std::log(interval.low / 2), -2.547953, 1e-6);
}

// The worked example in the manual of the R package statpsych (ci.ratio.median2, Bonett), which
// prints 43 / 37 = 1.162162 with the 95% interval 0.927667 to 1.455933.
TEST(RatioInterval, MatchesAPublishedExample) {
  const std::vector<double> y2 = {32, 39, 26, 35, 43, 27, 40, 37, 34, 29, 49, 42, 40};
  const std::vector<double> y1 = {36, 44, 47, 42, 49, 39, 46, 31, 33, 48};
  const RatioInterval interval = ratio_interval(*log_median(y1), *log_median(y2), 0.95);
  EXPECT_NEAR(interval.ratio, 1.162162, 5e-7);
  EXPECT_NEAR(interval.low, 0.927667, 5e-7);
  EXPECT_NEAR(interval.high, 1.455933, 5e-7);
}

// A generator of its own, so that the test does not depend on the library's distributions:
// splitmix64 (Steele, Lea and Flood 2014), normal values by Box and Muller.
class Normal {
 public:
  double operator()() {
    const double u = uniform(), v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
  }

 private:
  double uniform() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
  }
  std::uint64_t state_ = 20261130;
};

// The claim behind every verdict: of many pairs of skewed samples with equal medians, the share
// whose interval misses 1 is no larger than the 5% allowed. 4000 pairs know it to +-0.7%
// (two standard errors).
TEST(RatioInterval, CoversTheTrueRatioAsOftenAsItSays) {
  for (const int n : {9, 15, 40}) {
    Normal normal;
    int missed = 0;
    constexpr int pairs = 4000;
    for (int pair = 0; pair < pairs; ++pair) {
      std::vector<double> a, b;
      for (int i = 0; i < n; ++i) {
        a.push_back(std::exp(0.05 * std::abs(normal())));  // half-normal: one-sided noise
        b.push_back(std::exp(0.05 * std::abs(normal())));
      }
      const RatioInterval interval = ratio_interval(*log_median(a), *log_median(b), 0.95);
      missed += interval.low > 1 || interval.high < 1;
    }
    EXPECT_LE(missed, pairs * 0.057) << n;
    EXPECT_GE(missed, pairs * 0.005) << n << ": so wide that it could never tell anything";
  }
}

TEST(RoundMeans, AreOfPairsAndALoneLastSample) {
  EXPECT_EQ(round_means(std::vector<double>{1, 3, 10, 20, 7}), (std::vector<double>{2, 15, 7}));
  EXPECT_TRUE(round_means({}).empty());
}

TEST(GeometricMean, DoesNotDependOnTheSideARatioIsNormalisedTo) {
  EXPECT_NEAR(geometric_mean(std::vector<double>{2, 8}), 4, 1e-12);
  EXPECT_NEAR(geometric_mean(std::vector<double>{0.5, 0.125}), 0.25, 1e-12);
}

// TTFT of the six points of a published tuned / untuned table (docs/method.md): the arithmetic
// means say 0.8% slower, the geometric mean of the ratios 14% faster.
TEST(GeometricMean, OfAPublishedTableDisagreesWithTheArithmeticMeans) {
  const std::vector<double> untuned = {1176.38, 884.88, 1573.39, 5349.30, 12695.60, 126817.12};
  const std::vector<double> tuned = {982.67, 711.35, 1250.83, 4329.35, 11351.34, 131106.68};
  std::vector<double> ratios;
  for (std::size_t i = 0; i < tuned.size(); ++i) ratios.push_back(tuned[i] / untuned[i]);
  EXPECT_NEAR(geometric_mean(ratios), 0.858, 5e-4);
}

}  // namespace
}  // namespace moegauge
