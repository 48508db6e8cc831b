#include "harness/measure/summary.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace moegauge {
namespace {

CaseRecord measured_case(const std::string& config, std::vector<double> samples,
                         std::int64_t tokens = 16) {
  CaseRecord record;
  record.coordinates.model = "m";
  record.coordinates.scheme = "bf16";
  record.coordinates.config = config;
  record.coordinates.tokens = tokens;
  Measured measured;
  measured.latency = summarize(std::move(samples));
  record.outcome = std::move(measured);
  return record;
}

// Eleven rounds with means 1..11, each of a row 0.5 below and one 0.5 above. The 98% interval of 11
// values takes ranks 2 and 10: 1 - 2 (1 + 11)/2048 = .988, while ranks 3 and 9 cover
// 1 - 2 (1 + 11 + 55)/2048 = .935. Of the 22 rows, sorted 0.5, 1.5, 1.5, ... 10.5, 10.5, 11.5, the
// type-7 quantiles sit at 21 p: p10 at 2.1, between 1.5 and 2.5, p90 at 18.9, between 9.5 and 10.5.
TEST(Summarize, OfElevenRoundsByHand) {
  std::vector<double> samples;
  for (int mean = 11; mean >= 1; --mean) samples.insert(samples.end(), {mean - 0.5, mean + 0.5});
  const LatencySummary s = summarize(samples);
  EXPECT_EQ(s.median, 6);
  EXPECT_EQ(s.ci_low, 2);
  EXPECT_EQ(s.ci_high, 10);
  EXPECT_DOUBLE_EQ(s.p10, 1.6);
  EXPECT_DOUBLE_EQ(s.p90, 10.4);
  EXPECT_EQ(s.min, 0.5);
  EXPECT_EQ(s.max, 11.5);
  EXPECT_EQ(s.mean, 6);
  EXPECT_EQ(s.samples, samples) << "kept raw, in the order measured";
}

// Rows that only repeat their round's other row are no evidence of their own: eleven values twice
// know the median as well as eleven values once. As 22 they would seem to know it to ranks 6
// and 17.
TEST(Summarize, TwoEqualRowsOfARoundAreOnePieceOfEvidence) {
  std::vector<double> samples;
  for (int value = 1; value <= 11; ++value) samples.insert(samples.end(), 2, value);
  const LatencySummary s = summarize(samples);
  EXPECT_EQ(s.ci_low, 2);
  EXPECT_EQ(s.ci_high, 10);
}

TEST(Summarize, QuantilesBetweenSamplesAreInterpolated) {
  const LatencySummary s = summarize({0, 1});  // p10 at 0.1, p90 at 0.9 of the way
  EXPECT_DOUBLE_EQ(s.p10, 0.1);
  EXPECT_DOUBLE_EQ(s.p90, 0.9);
}

// Six rounds whose ratios by hand are 2, 2, 2, 2, 2.5 (10/4) and 1 (4/4); median 2, and of six
// values the interval can be no more than [min, max].
TEST(PairedRatio, IsTheMedianOfTheRoundsOwnRatios) {
  const std::vector<double> a = {2, 2, 4, 4, 6, 6, 8, 8, 5, 5, 2, 2};
  const std::vector<double> b = {1, 1, 2, 2, 3, 3, 4, 4, 2, 2, 2, 2};
  const PairedRatio paired = paired_ratio(a, b);
  EXPECT_DOUBLE_EQ(paired.ratio, 2);
  EXPECT_DOUBLE_EQ(paired.low, 1);
  EXPECT_DOUBLE_EQ(paired.high, 2.5);
  EXPECT_EQ(paired.rounds, 6);
}

// A machine that gets slower by a factor of 100 between rounds does not blur the ratio.
TEST(PairedRatio, IsExactWhereOnlyTheMachineChangesBetweenRounds) {
  std::vector<double> a, b;
  double speed = 1;
  for (int round = 0; round < 8; ++round, speed *= 2) {
    a.insert(a.end(), {3 * speed, 3 * speed});
    b.insert(b.end(), {2 * speed, 2 * speed});
  }
  const PairedRatio paired = paired_ratio(a, b);
  EXPECT_DOUBLE_EQ(paired.low, 1.5);
  EXPECT_DOUBLE_EQ(paired.high, 1.5);
}

TEST(CompareRivals, ComparesEveryPairOfOnePointAndNoOthers) {
  const std::vector<double> slow(12, 2.0), fast(12, 1.0);
  CaseRecord wrong = measured_case("file:x.json", fast);
  wrong.outcome = Unmeasured{Status::inaccurate, "wrong", std::nullopt};
  const std::vector<CaseRecord> cases = {measured_case("default", slow),
                                         measured_case("tuned", fast), wrong,
                                         measured_case("default", slow, 32)};
  const auto comparisons = compare_rivals(cases);
  ASSERT_EQ(comparisons.size(), 1u);
  EXPECT_EQ(comparisons[0].a, cases[0].id());
  EXPECT_EQ(comparisons[0].b, cases[1].id());
  EXPECT_EQ(comparisons[0].ratio, 2);
  EXPECT_EQ(comparisons[0].pairs, 6);
}

}  // namespace
}  // namespace moegauge
