#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/judge_testing.h"
#include "harness/judge/report.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

struct Pairs {
  std::vector<Result> a, b;
};

// The machine drifts by 10% over all pairs, in both halves of each. On top, B's processes are off
// by
// +-0.4%, whose mean is 0, and its first case is slower.
Pairs pairs(std::size_t count, double slower = 1) {
  Pairs sides;
  for (std::size_t i = 0; i < count; ++i) {
    const double drift = 0.1 * static_cast<double>(i) / static_cast<double>(count);
    Result a = fake_result(), b = fake_result();
    for (CaseRecord& record : a.cases) scale_latency(record, std::exp(drift));
    for (CaseRecord& record : b.cases)
      scale_latency(record, std::exp(drift + (i % 2 == 0 ? 0.004 : -0.004)));
    scale_latency(b.cases[0], slower);
    sides.a.push_back(std::move(a));
    sides.b.push_back(std::move(b));
  }
  return sides;
}

Judgement judged_in_pairs(const Pairs& sides) {
  const Evidence evidence = gather_pairs(sides.b, sides.a);
  return judge(representative(sides.b), representative(sides.a), policy(), limits, "*", evidence);
}

TEST(PairGate, CallsACaseSlowerAndItsNeighboursTheSameWhateverTheDrift) {
  const Judgement judgement = judged_in_pairs(pairs(14, 1.03));
  const LatencyJudgement& slower = *judgement.cases[0].latency;
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_EQ(slower.change, Change::slower);
  EXPECT_NEAR(slower.ratio, 1.03, 1e-9);
  EXPECT_EQ(slower.result_processes, 14u);
  EXPECT_LT(slower.smallest_failing_ratio, 1.03);
  EXPECT_EQ(judgement.cases[1].latency->change, Change::same);
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
  EXPECT_EQ(exit_code(judgement), 1);
}

TEST(PairGate, CallsACaseFasterAndLetsItPass) {
  const Judgement judgement = judged_in_pairs(pairs(14, 1 / 1.03));
  EXPECT_EQ(judgement.cases[0].latency->change, Change::faster);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::improved);
  EXPECT_EQ(exit_code(judgement), 0);
}

// The policy's floor is 1%: what is smaller is no change, however many pairs agree on it.
TEST(PairGate, CallsAChangeBelowTheFloorNone) {
  EXPECT_EQ(judged_in_pairs(pairs(60, 1.008)).cases[0].verdict, Verdict::pass);
}

// Two pairs whose differences are 0.30 and -0.28: standard error 0.29, t with about 1 to 3 degrees
// of freedom; an interval that reaches far beyond the limit on both sides.
TEST(PairGate, CannotTellFromTwoNoisyPairsAndSaysHowManyAreNeeded) {
  Pairs sides = pairs(2);
  for (CaseRecord& record : sides.b[0].cases) scale_latency(record, std::exp(0.30));
  for (CaseRecord& record : sides.b[1].cases) scale_latency(record, std::exp(-0.28));
  const Judgement judgement = judged_in_pairs(sides);
  EXPECT_EQ(judgement.cases[0].latency->change, Change::inconclusive);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("pairs or more (--pairs)"));
  EXPECT_EQ(exit_code(judgement), 4);
}

TEST(PairGate, LeavesOutAPairOfWhichOneHalfIsNotOkAndFailsTheCase) {
  Pairs sides = pairs(14);
  sides.b[3].cases[0].outcome =
      Unmeasured{.status = Status::crashed, .reason = "killed by SIGSEGV"};
  const Evidence evidence = gather_pairs(sides.b, sides.a);
  EXPECT_EQ(evidence.at(sides.a[0].cases[0].id()).pairs.size(), 13u);
  EXPECT_EQ(evidence.at(sides.a[0].cases[1].id()).pairs.size(), 14u);
  EXPECT_EQ(judged_in_pairs(sides).cases[0].verdict, Verdict::fail);
}

TEST(PairGate, IsReportedByOutcome) {
  const std::string text =
      text_report_of_builds(judged_in_pairs(pairs(14, 1.03)), {.result = "new", .baseline = "old"});
  EXPECT_THAT(text, HasSubstr("A = old\nB = new\n"));
  EXPECT_THAT(text, HasSubstr("slower"));
  EXPECT_THAT(text, HasSubstr("1.030x"));
  EXPECT_THAT(text, HasSubstr("FAIL: 1 of 3 cases"));
}

}  // namespace
}  // namespace moegauge
