#include "harness/statistics/robust.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/statistics/noise_testing.h"

namespace moegauge {
namespace {

TEST(RobustLocation, OfFewValuesIsMeanAndVariance) {
  const Location location = robust_location(std::vector<double>{1, 2, 3, 6});
  EXPECT_EQ(location.value, 3);
  EXPECT_NEAR(location.variance.value, (4 + 1 + 0 + 9) / 3.0, 1e-12);
  EXPECT_EQ(location.variance.degrees_of_freedom, 3);
  EXPECT_EQ(robust_location(std::vector<double>{5}).variance.degrees_of_freedom, 0);
}

// Within the bound the estimate is the mean exactly: of -2 .. 2 about 10 nothing is cut.
TEST(RobustLocation, IsTheMeanWhereNothingIsFarOff) {
  const std::vector<double> values = {8, 8, 9, 9, 10, 10, 10, 11, 11, 12, 12};
  EXPECT_NEAR(robust_location(values).value, 10, 1e-9);
}

// Sixteen values, the largest moved a long way: an outlier counts as two scales, no more, however
// far it lies.
TEST(RobustLocation, IsMovedByAnOutlierNoFurtherThanTwoScalesAllow) {
  std::vector<double> values;
  for (int i = 0; i < 15; ++i) values.push_back(0.1 * (i - 7));
  values.push_back(5);
  const Location near = robust_location(values);
  values.back() = 1e6;
  const Location far = robust_location(values);
  EXPECT_NEAR(near.value, far.value, 1e-6);
  EXPECT_NEAR(near.variance.value, far.variance.value, 1e-6);
}

TEST(RobustLocation, OfEqualValuesHasNoSpread) {
  const Location location = robust_location(std::vector<double>(12, 0.5));
  EXPECT_EQ(location.value, 0.5);
  EXPECT_EQ(location.variance.value, 0);
}

// At a scale of 1, the 50 counts as centre + 2: centre = (0 + 0.3 + 0.6 + centre + 2) / 4.
TEST(RobustLocation, AtAKnownScaleBoundsOneOfFourValues) {
  const std::vector<double> values = {0, 0.3, 0.6, 50};
  EXPECT_NEAR(robust_location(values, 1.0).value, 2.9 / 3, 1e-9);
}

// The variance must be the one that centres of repeated samples have: 4000 samples of 16 know it to
// 2.2% (one standard error).
TEST(RobustLocation, SaysHowFarItsCentreVaries) {
  TestRandom random(5);
  double squares = 0, said = 0;
  constexpr int samples = 4000;
  for (int i = 0; i < samples; ++i) {
    std::vector<double> values(16);
    for (double& value : values) value = random.normal();
    const Location location = robust_location(values);
    squares += location.value * location.value;
    said += location.variance.value / 16;
  }
  EXPECT_NEAR(said / squares, 1, 0.08);
  EXPECT_NEAR(squares / samples * 16, 1.01, 0.07);  // 1% above the mean's
}

// n = 10: one-sided P(W+ >= 47) = P(W- <= 8) = 25/1024 (the count of subsets of 1..10 with a sum of
// at most 8: 1+1+1+2+2+3+4+5+6); the printed critical value for two-sided 5% is 8.
TEST(SignedRank, MatchesThePrintedCriticalValueOfTen) {
  std::vector<double> values;
  for (int i = 1; i <= 10; ++i) values.push_back(i == 8 ? -i : i);
  EXPECT_NEAR(signed_rank_upper_p(values), 25.0 / 1024, 1e-12);
}

TEST(SignedRank, OfAllPositiveIsTheRarestOfAll) {
  EXPECT_NEAR(signed_rank_upper_p(std::vector<double>{1, 2, 3, 4}), 1.0 / 16, 1e-12);
  EXPECT_NEAR(signed_rank_upper_p(std::vector<double>{-1, -2, -3}), 1, 1e-12);
  EXPECT_EQ(signed_rank_upper_p(std::vector<double>{0, 0}), 1);
}

// |1|, |1| share rank 1.5, so that W+ is 1.5 + 3 of the sums 0, 1.5, 1.5, 3, 3, 4.5, 4.5, 6.
TEST(SignedRank, GivesTiesTheirMeanRank) {
  EXPECT_NEAR(signed_rank_upper_p(std::vector<double>{1, -1, 2}), 3.0 / 8, 1e-12);
}

// n = 10 at 95%: k = 9 (the critical value 8, plus 1), coverage 1 - 50/1024. Of 1..10 the means of
// two have the median 5.5 and, counted from below, 1, 1.5, 2, 2, 2.5, 2.5, 3, 3, 3: the ninth is 3.
TEST(HodgesLehmann, MatchesTheIntervalCountedByHand) {
  std::vector<double> values;
  for (int i = 10; i >= 1; --i) values.push_back(i);
  const auto interval = hodges_lehmann(values, 0.95);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->value, 5.5);
  EXPECT_EQ(interval->low, 3);
  EXPECT_EQ(interval->high, 8);
  EXPECT_NEAR(interval->coverage, 1 - 50.0 / 1024, 1e-12);
  EXPECT_FALSE(hodges_lehmann(std::vector<double>(9, 1.0), 0.95));
}

}  // namespace
}  // namespace moegauge
