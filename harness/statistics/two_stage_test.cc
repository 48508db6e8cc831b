#include "harness/statistics/two_stage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/statistics/noise_testing.h"

namespace moegauge {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Processes differ by 1% as given: of 4 against 16 the standard error is 1% sqrt(1/4 + 1/16) =
// 0.559%, the interval at 95% 1.96 of them.
TEST(Screening, KnowsAnIntervalFromASpreadThatIsGiven) {
  const std::vector<double> now(4, 0.02), baseline(16, 0.0);
  const auto screened =
      screen(std::vector{CaseSamples{now, baseline, {1e-4, infinity}}}, Aim{}, 0.95).cases;
  EXPECT_NEAR(screened[0].value, 0.02, 1e-12);
  EXPECT_NEAR(screened[0].standard_error, 0.00559017, 1e-8);
  EXPECT_NEAR(screened[0].high, 0.02 + 1.959964 * 0.00559017, 1e-8);
  EXPECT_TRUE(screened[0].may_be_slower);
  EXPECT_FALSE(screened[0].may_be_faster);
}

TEST(Screening, DecidesNothingWhereNoSpreadIsKnown) {
  const std::vector<double> one = {0.5}, other = {0.0};
  const auto screened = screen(std::vector{CaseSamples{one, other}}, Aim{}, 0.95).cases;
  EXPECT_EQ(screened[0].degrees_of_freedom, 0);
  EXPECT_FALSE(screened[0].may_be_slower);
  EXPECT_EQ(screened[0].p_slower(), 1);
}

TEST(Screening, BorrowsTheSpreadOfOtherCases) {
  TestRandom random(9);
  std::vector<std::vector<double>> baselines(200, std::vector<double>(4));
  for (auto& baseline : baselines) {
    for (double& value : baseline) value = 0.01 * random.normal();
  }
  const std::vector<double> now = {0.0};
  std::vector<CaseSamples> cases;
  for (const auto& baseline : baselines) cases.push_back({now, baseline});
  for (const Screened& s : screen(cases, Aim{}, 0.95).cases) {
    EXPECT_NEAR(s.between, 0.01, 0.0025);
    EXPECT_GT(s.degrees_of_freedom, 40);
  }
}

std::vector<double> pairs_about(double centre, std::size_t count, TestRandom& random) {
  std::vector<double> pairs(count);
  for (double& pair : pairs) pair = centre + 0.014 * std::sqrt(2.0) * random.normal();
  return pairs;
}

TEST(Confirmation, FindsASlowerAndAFasterCaseAndNotTheOthers) {
  TestRandom random(10);
  std::vector<std::vector<double>> pairs;
  for (const double centre : {0.05, -0.05, 0.0, 0.0}) {
    pairs.push_back(pairs_about(centre, 16, random));
  }
  std::vector<PairedCase> candidates;
  for (const auto& p : pairs) candidates.push_back({p});
  const auto list = confirm(candidates, Variance{0.014 * 0.014, 60}, Aim{}, 0.95);
  EXPECT_EQ(list[0].found, Direction::slower);
  EXPECT_EQ(list[1].found, Direction::faster);
  EXPECT_EQ(list[2].found, std::nullopt);
  EXPECT_EQ(list[3].found, std::nullopt);
  EXPECT_GT(list[2].smallest, 0.01);
}

// However sure: 0.5% is less than what counts as a change.
TEST(Confirmation, CallsNothingAChangeThatIsSmallerThanTheLeast) {
  std::vector<double> pairs(16, 0.005);
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] += 1e-5 * static_cast<double>(i);
  const auto list = confirm(std::vector{PairedCase{pairs}}, std::nullopt, Aim{}, 0.95);
  EXPECT_LT(list[0].adjusted_p, 1e-6);
  EXPECT_EQ(list[0].found, std::nullopt);
}

// Three of sixteen pairs a third slower, the others as before: no regression of the kernel.
TEST(Confirmation, IsNotFooledByOutliers) {
  TestRandom random(11);
  std::vector<double> pairs = pairs_about(0, 13, random);
  pairs.insert(pairs.end(), 3, 0.3);
  const auto list = confirm(std::vector{PairedCase{pairs, Direction::slower}},
                            Variance{0.014 * 0.014, 60}, Aim{}, 0.95);
  EXPECT_EQ(list[0].found, std::nullopt);
}

TEST(Confirmation, OfAnAskedDirectionIgnoresTheOther) {
  TestRandom random(12);
  const std::vector<double> pairs = pairs_about(-0.08, 16, random);
  const auto list =
      confirm(std::vector{PairedCase{pairs, Direction::slower}}, std::nullopt, Aim{}, 0.95);
  EXPECT_EQ(list[0].found, std::nullopt);
}

TEST(StagePlan, IsNoneWhereNothingShowsHowCasesDiffer) {
  EXPECT_EQ(pairs_needed({0.014 * 0.014, 0}, 15, Aim{}), 0u);
  EXPECT_EQ(pairs_needed({HUGE_VAL, 4}, 15, Aim{}), 0u);
  EXPECT_EQ(pairs_needed({std::nan(""), 4}, 15, Aim{}), 0u);
  EXPECT_EQ(plan_stages({0.014 * 0.014, 0}, 500, 20, Aim{}).screening_processes, 0u);
}

// By hand at 1.4%, 15 candidates, df 60 + 15: t(0.003 / 15) = 3.71, power 98.5%: 2.17; variance of
// a mean case 0.014^2 * 60 / 58; 2 * 1.02 * 1.034 * (0.014 * 5.88 / 0.02956)^2 = 16.4, so 17 pairs.
TEST(StagePlan, NeedsSeventeenPairsAtTheSpreadOfAnH200) {
  EXPECT_EQ(pairs_needed({0.014 * 0.014, 60}, 15, Aim{}), 17u);
  EXPECT_EQ(pairs_needed({0.001 * 0.001, 60}, 15, Aim{}), least_pairs);
  const StagePlan plan = plan_stages({0.014 * 0.014, 60}, 500, 20, Aim{});
  EXPECT_GE(plan.screening_processes, 3u);
  EXPECT_LE(plan.screening_processes, 6u);
}

}  // namespace
}  // namespace moegauge
