// The figures are those that public reports of kernel changes gave; the bounds were worked out
// apart from this code: difference - 1.6449 * hypot of the standard errors.
#include "harness/endtoend/verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace moegauge {
namespace {

using testing::ElementsAre;

TEST(NonInferiority, ScoutPassesTwoPercentAndIsOpenAtOne) {
  const auto judged = non_inferiority({0.9189, 0.0075}, {0.9136, 0.0077});
  ASSERT_TRUE(judged);
  EXPECT_NEAR(judged->difference, 0.0053, 1e-12);
  EXPECT_NEAR(judged->lower_bound, -0.0124, 5e-5);
  EXPECT_TRUE(judged->passes(0.02));
  EXPECT_FALSE(judged->passes(0.01));
  EXPECT_FALSE(judged->fails(0.01));
}

TEST(NonInferiority, MaverickPassesTwoAndAHalfPercentAndNotTwo) {
  const auto judged = non_inferiority({0.9227, 0.0074}, {0.9272, 0.0072});
  ASSERT_TRUE(judged);
  EXPECT_NEAR(judged->lower_bound, -0.0215, 5e-5);
  EXPECT_TRUE(judged->passes(0.025));
  EXPECT_FALSE(judged->passes(0.02));
}

TEST(NonInferiority, NeedsBothStandardErrors) {
  EXPECT_FALSE(non_inferiority({0.9, std::nullopt}, {0.9, 0.01}));
  EXPECT_FALSE(non_inferiority({0.9, 0.01}, {0.9, std::nullopt}));
}

TEST(NonInferiority, FiftyQuestionsDoNotDecideAOnePercentQuestion) {
  const double error = std::sqrt(0.9 * 0.1 / 50);  // of a score of 90%
  const auto judged = non_inferiority({0.9, error}, {0.9, error});
  ASSERT_TRUE(judged);
  EXPECT_FALSE(judged->passes(0.01));
  EXPECT_FALSE(judged->fails(0.01));
  // (1.6449 + 0.8416) * sqrt(2) * 0.042426
  EXPECT_NEAR(judged->smallest_seen, 0.14919, 1e-4);
}

TEST(NonInferiority, ASurelyWorseScoreFails) {
  const auto judged = non_inferiority({0.80, 0.007}, {0.90, 0.007});
  EXPECT_TRUE(judged->fails(0.02));
}

TEST(McNemar, CountsOnlyQuestionsOnWhichTheRunsDiffer) {
  EXPECT_EQ(mcnemar_worse({0, 0}), 1);
  EXPECT_NEAR(mcnemar_worse({1, 0}), 0.5, 1e-12);
  // P(X >= 8 of 10) = (45 + 10 + 1) / 1024
  EXPECT_NEAR(mcnemar_worse({8, 2}), 56.0 / 1024, 1e-12);
  EXPECT_NEAR(mcnemar_worse({2, 8}), 1 - 11.0 / 1024, 1e-12);
}

// Time to first token, untuned and tuned, of six lengths.
const std::vector<std::pair<double, double>> first_model = {
    {1176.38, 982.67},  {884.88, 711.35},     {1573.39, 1250.83},
    {5349.30, 4329.35}, {12695.60, 11351.34}, {126817.12, 131106.68}};

TEST(Serving, EveryPointHasItsVerdictWhateverTheMeansSay) {
  std::vector<ServingVerdict> verdicts;
  std::vector<double> percents;
  double before = 0, after = 0, logs = 0;
  for (const auto& [untuned, tuned] : first_model) {
    const ServingChange change =
        serving_change(tuned, untuned, GoodDirection::lower_is_better, 0.01);
    verdicts.push_back(change.verdict);
    percents.push_back(std::round(1000 * change.change) / 10);
    before += untuned;
    after += tuned;
    logs += std::log(tuned / untuned);
  }
  using enum ServingVerdict;
  EXPECT_THAT(verdicts, ElementsAre(better, better, better, better, better, worse));
  EXPECT_THAT(percents, ElementsAre(-16.5, -19.6, -20.5, -19.1, -10.6, 3.4));
  // The two means point in opposite directions, which is why neither decides.
  EXPECT_NEAR(after / before - 1, 0.008, 5e-4);
  EXPECT_NEAR(std::exp(logs / 6), 0.858, 5e-4);
}

TEST(Serving, ThroughputPerDeviceGivesThePublishedPercentages) {
  const std::vector<std::pair<double, double>> points = {{99.88, 104.94},    {463.69, 502.55},
                                                         {880.10, 981.21},   {976.30, 1236.57},
                                                         {1110.16, 1273.92}, {1199.22, 1469.05}};
  std::vector<double> percents;
  for (const auto& [previous, patched] : points) {
    const auto change = serving_change(patched, previous, GoodDirection::higher_is_better, 0.01);
    EXPECT_EQ(change.verdict, ServingVerdict::better);
    percents.push_back(std::round(1000 * change.change) / 10);
  }
  // 976.30 -> 1236.57 is 26.659%, and 1110.16 -> 1273.92 14.751%.
  EXPECT_THAT(percents, ElementsAre(5.1, 8.4, 11.5, 26.7, 14.8, 22.5));
}

// The score test of Tango (Stat. Med. 17 (1998) 891-908) has a closed form where no pair is
// discordant: |difference| = z^2 / (n + z^2).
TEST(PairedNonInferiority, WithoutDiscordantPairsDependsOnTheNumberOfQuestions) {
  const double z = 1.6448536269514722;
  for (const std::int64_t n : {50, 267, 1319}) {
    const NonInferiority judged = paired_non_inferiority({0, 0}, n);
    EXPECT_EQ(judged.difference, 0);
    EXPECT_NEAR(judged.lower_bound, -z * z / (static_cast<double>(n) + z * z), 1e-9);
    EXPECT_NEAR(judged.upper_bound, z * z / (static_cast<double>(n) + z * z), 1e-9);
  }
  EXPECT_FALSE(paired_non_inferiority({0, 0}, 50).passes(0.01));
  EXPECT_TRUE(paired_non_inferiority({0, 0}, 1319).passes(0.01));
}

TEST(PairedNonInferiority, IsNearTheUsualIntervalWhereMuchIsDiscordant) {
  const double n = 10000, b = 400, c = 300;
  const NonInferiority judged = paired_non_inferiority({.only_old = 300, .only_new = 400}, 10000);
  const double usual = std::sqrt(b + c - (b - c) * (b - c) / n) / n;
  EXPECT_NEAR(judged.difference, 0.01, 1e-12);
  EXPECT_NEAR(judged.lower_bound, 0.01 - 1.6449 * usual, 3e-5);
  EXPECT_NEAR(judged.upper_bound, 0.01 + 1.6449 * usual, 3e-5);
  // Mirrored sides give mirrored bounds.
  const NonInferiority mirrored = paired_non_inferiority({.only_old = 400, .only_new = 300}, 10000);
  EXPECT_NEAR(mirrored.upper_bound, -judged.lower_bound, 1e-9);
}

TEST(ShareError, OfFewRightOrWrongAnswersIsThatOfTwoMoreOfEach) {
  EXPECT_EQ(share_error({0.9189, 0.0075}, std::nullopt), 0.0075);
  EXPECT_EQ(share_error({0.9189, 0.0075}, 1319), 0.0075);
  EXPECT_EQ(share_error({1.0, 0.0}, std::nullopt), std::nullopt);
  EXPECT_NEAR(*share_error({1.0, 0.0}, 50), std::sqrt(52.0 / 54 * 2 / 54 / 54), 1e-12);
  EXPECT_EQ(share_error({0.5, std::nullopt}, 50), std::nullopt);
  EXPECT_EQ(share_error({12.5, 0.1}, 50), 0.1);  // a perplexity
}

}  // namespace
}  // namespace moegauge
