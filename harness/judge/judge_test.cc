#include "harness/judge/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/judge_testing.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

TEST(Gate, OfAResultAgainstItselfPasses) {
  const Judgement judgement = judged(fake_result(), fake_result());
  EXPECT_EQ(exit_code(judgement), 0);
  EXPECT_EQ(conclusion(judgement), "PASS: 3 cases");
  EXPECT_NEAR(*judgement.geometric_mean_ratio, 1, 1e-12);
  for (const CaseVerdict& verdict : judgement.cases) EXPECT_EQ(verdict.verdict, Verdict::pass);
}

TEST(Gate, AgainstHalvedLatenciesFailsAndNamesTheCases) {
  Result baseline = fake_result();
  for (CaseRecord& record : baseline.cases) scale_latency(record, 0.5);
  const Judgement judgement = judged(fake_result(), baseline);
  EXPECT_EQ(exit_code(judgement), 1);
  EXPECT_EQ(conclusion(judgement), "FAIL: 3 of 3 cases");
  EXPECT_EQ(judgement.cases[0].id, fake_result().cases[0].id());
  EXPECT_THAT(judgement.cases[0].sentence(),
              HasSubstr("slower: 100.0 us is 2.000x the baseline's 50.00 us"));
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("record a new baseline on purpose"));
}

TEST(Gate, AgainstDoubledLatenciesReportsTheGain) {
  const CaseVerdict verdict = after([](CaseRecord& record) { scale_latency(record, 0.5); });
  EXPECT_EQ(verdict.verdict, Verdict::improved);
  EXPECT_THAT(verdict.sentence(), HasSubstr("so that the gain is kept"));
}

// Fake rounds lie at +-0.4% about the median in steps of 0.1%: nine of them. By the formula of
// statistics.h: c = 2, standard error ln(1.003 / 0.997) / (2 * 2.063528) = 0.00145385 for each
// side; quadrature with two processes' 1.4% each: sqrt(2 (0.00145385^2 + 0.014^2)) = 0.0199055;
// times 1.959964: 0.0390142. So a ratio r fails above 1.05 * exp(0.0390142) = 1.09177.
TEST(Gate, FailsExactlyFromTheSmallestFailingRatioOn) {
  const auto verdict_at = [](double ratio) {
    return after([ratio](CaseRecord& record) { scale_latency(record, ratio); });
  };
  const CaseVerdict below = verdict_at(1.091), above = verdict_at(1.0925);
  EXPECT_EQ(below.verdict, Verdict::inconclusive);
  EXPECT_EQ(above.verdict, Verdict::fail);
  EXPECT_NEAR(below.latency->smallest_failing_ratio, 1.09177, 2e-5);
  EXPECT_THAT(below.sentence(), HasSubstr("only 1.092x or more would have failed"));
  // And passes up to 1.05 / exp(0.0390142) = 1.00983.
  EXPECT_EQ(verdict_at(1.0095).verdict, Verdict::pass);
  EXPECT_EQ(verdict_at(1.0105).verdict, Verdict::inconclusive);
}

TEST(Gate, InconclusiveIsAllowedUnlessThePolicyIsStrict) {
  Result result = fake_result();
  scale_latency(result.cases[1], 1.04);
  const Judgement lenient = judged(result, fake_result());
  EXPECT_EQ(exit_code(lenient), 0);
  EXPECT_EQ(conclusion(lenient), "PASS: nothing failed; 1 of 3 cases inconclusive");
  Policy strict = policy();
  strict.strict = true;
  const Judgement judgement = judged(result, fake_result(), strict);
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(conclusion(judgement), "NO VERDICT: 1 of 3 cases inconclusive under a strict policy");
}

TEST(Gate, ADifferenceBelowTheClocksResolutionNeverFails) {
  const auto shrink_both = [](CaseRecord& record) { scale_latency(record, 0.002); };  // 0.2 us
  Result result = fake_result(), baseline = fake_result();
  shrink_both(result.cases[0]);
  shrink_both(baseline.cases[0]);
  scale_latency(result.cases[0], 2);
  EXPECT_EQ(judged(result, baseline).cases[0].verdict, Verdict::pass);
}

// Equal medians do not make up for rounds that spread from half to double.
TEST(Gate, EqualMediansOfNoisySamplesAreInconclusive) {
  const CaseVerdict verdict = after_measured([](Measured& m) {
    m.latency.samples.clear();
    for (const double us : {50, 60, 70, 80, 100, 120, 140, 160, 200}) {
      m.latency.samples.insert(m.latency.samples.end(), 2, us);
    }
  });
  EXPECT_EQ(verdict.latency->ratio, 1);
  EXPECT_EQ(verdict.verdict, Verdict::inconclusive);
}

// There is one draw of the noise, not two: nothing can differ, however much the samples spread.
TEST(Gate, OfNoisySamplesAgainstThemselvesPasses) {
  Result noisy = fake_result();
  auto& latency = std::get<Measured>(noisy.cases[0].outcome).latency;
  latency.samples.clear();
  for (const double us : {50, 60, 70, 80, 100, 120, 140, 160, 200}) {
    latency.samples.insert(latency.samples.end(), 2, us);
  }
  const CaseVerdict verdict = judged(noisy, noisy).cases[0];
  EXPECT_EQ(verdict.verdict, Verdict::pass);
  EXPECT_THAT(verdict.sentence(), HasSubstr("the baseline's own measurement"));
}

// Ten samples are five rounds of two.
TEST(Gate, SaysWhenFiveRoundsCannotTell) {
  const CaseVerdict verdict = after_measured([](Measured& m) { m.latency.samples.resize(10); });
  EXPECT_EQ(verdict.verdict, Verdict::inconclusive);
  EXPECT_EQ(verdict.sentence(),
            "the result holds fewer than 6 usable rounds of latencies: measure it again");
}

TEST(Gate, UsesTheSummaryWhereRawSamplesWereNotKept) {
  const CaseVerdict verdict = after_measured([](Measured& m) {
    m.latency.samples.clear();
    m.latency.median = 200;
    m.latency.ci_low = 199;
    m.latency.ci_high = 201;
  });
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_NEAR(verdict.latency->ratio, 2, 1e-12);
}

TEST(Gate, TrustsNoLatencyBelowTheFloor) {
  const CaseVerdict verdict = after_measured([](Measured& m) {
    m.suspect = true;
    m.suspect_reason = "40% of the floor";
  });
  EXPECT_EQ(verdict.verdict, Verdict::inconclusive);
  EXPECT_EQ(
      verdict.sentence(),
      "the result's latency is suspect (40% of the floor): find out why, then measure it again");
}

}  // namespace
}  // namespace moegauge
