#include "harness/judge/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "harness/judge/fake_result.h"

namespace moegauge {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// 5% slower fails, processes differ by 1.4%; below, the limits of bf16.
Policy policy() {
  return {.name = "test",
          .confidence = 0.95,
          .strict = false,
          .total = {.limit = 1.03, .applies_above = 0.01},
          .latency = {{.ratio_limit = 1.05, .between_runs = 0.014, .floor_us = 0.5}},
          .error = {{.growth_limit = 1.03, .growth_floor = 1e-6}}};
}

ErrorLimits limits(const CaseRecord&, const CheckResult&) { return {0.003, 0.01}; }

Judgement judged(const Result& result, const Result& baseline, const Policy& p = policy(),
                 const std::string& filter = "*") {
  return judge(result, baseline, p, limits, filter);
}

// The verdict on the first case after `change` was made to it.
CaseVerdict after(const std::function<void(CaseRecord&)>& change, const Policy& p = policy()) {
  Result result = fake_result();
  change(result.cases[0]);
  return judged(result, fake_result(), p).cases[0];
}

CaseVerdict after_measured(const std::function<void(Measured&)>& change,
                           const Policy& p = policy()) {
  return after([&](CaseRecord& record) { change(std::get<Measured>(record.outcome)); }, p);
}

std::vector<std::string> subjects(const CaseVerdict& verdict) {
  std::vector<std::string> names;
  for (const Finding& f : verdict.findings) names.push_back(f.subject);
  return names;
}

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

// Fake samples lie at +-0.4% about the median in steps of 0.1%: nine of them. By the formula of
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

// Equal medians do not make up for samples that spread from half to double.
TEST(Gate, EqualMediansOfNoisySamplesAreInconclusive) {
  const CaseVerdict verdict = after_measured(
      [](Measured& m) { m.latency.samples = {50, 60, 70, 80, 100, 120, 140, 160, 200}; });
  EXPECT_EQ(verdict.latency->ratio, 1);
  EXPECT_EQ(verdict.verdict, Verdict::inconclusive);
}

TEST(Gate, SaysWhenFiveSamplesCannotTell) {
  const CaseVerdict verdict = after_measured([](Measured& m) { m.latency.samples.resize(5); });
  EXPECT_EQ(verdict.verdict, Verdict::inconclusive);
  EXPECT_EQ(verdict.sentence(),
            "the result holds fewer than 6 usable latency samples: measure it again");
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

TEST(Gate, WithoutAMatchIsNoVerdict) {
  const Judgement judgement = judged(fake_result(), fake_result(), policy(), "nothing/*");
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(conclusion(judgement), "NO VERDICT: no case matched");
}

TEST(Gate, OfTwoEmptyResultsIsNoVerdict) { EXPECT_EQ(exit_code(judged({}, {})), 4); }

TEST(Gate, FilterNarrowsBothSides) {
  Result result = fake_result();
  result.cases.resize(1);
  EXPECT_EQ(exit_code(judged(result, fake_result(), policy(), "*/M=1")), 0);
}

TEST(Gate, OfACaseWithoutBaselineIsNoVerdict) {
  Result baseline = fake_result();
  baseline.cases.pop_back();
  const Judgement judgement = judged(fake_result(), baseline);
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(judgement.cases[2].verdict, Verdict::no_verdict);
  EXPECT_EQ(judgement.cases[2].sentence(),
            "the baseline has no such case: record a new baseline with it");
}

TEST(Gate, OfAVanishedCaseIsNoVerdictAndNamesIt) {
  Result result = fake_result();
  result.cases.pop_back();
  const Judgement judgement = judged(result, fake_result());
  EXPECT_EQ(exit_code(judgement), 4);
  ASSERT_EQ(judgement.cases.size(), 3u);
  EXPECT_EQ(judgement.cases[2].id, fake_result().cases[2].id());
  EXPECT_EQ(judgement.cases[2].sentence(),
            "ok in the baseline, absent from the result: run it, narrow --filter, or record a new "
            "baseline without it");
}

TEST(Gate, OfARenamedCaseIsNoVerdictAndGuessesTheNewName) {
  Result result = fake_result();
  result.cases[0].coordinates.model = "renamed";
  const Judgement judgement = judged(result, fake_result());
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(judgement.count(Verdict::no_verdict), 2u);
  EXPECT_THAT(judgement.cases.back().sentence(), HasSubstr("if it is now " + result.cases[0].id()));
}

TEST(Gate, AFailureOutranksAMissingBaseline) {
  Result result = fake_result();
  scale_latency(result.cases[0], 2);
  result.cases[1].coordinates.model = "renamed";
  EXPECT_EQ(exit_code(judged(result, fake_result())), 1);
}

TEST(Gate, OfAnotherDeviceIsNoVerdict) {
  const CaseVerdict verdict = after([](CaseRecord& record) { record.device = "other"; });
  EXPECT_EQ(verdict.verdict, Verdict::no_verdict);
  EXPECT_EQ(verdict.sentence(),
            "the device is other, the baseline's fake device: record a baseline on other");
  EXPECT_FALSE(verdict.latency);
}

TEST(Gate, OfOtherInputsIsNoVerdict) {
  const CaseVerdict verdict = after([](CaseRecord& record) { record.seed = 9; });
  EXPECT_EQ(verdict.verdict, Verdict::no_verdict);
  EXPECT_EQ(verdict.sentence(), "the seed is 9, the baseline's 7: run again with --seed 7");
}

TEST(Gate, OfAnotherExecutedSchemeIsNoVerdict) {
  const CaseVerdict verdict =
      after_measured([](Measured& m) { m.check.executed_scheme = "fp8_block_fnuz"; });
  EXPECT_EQ(verdict.verdict, Verdict::no_verdict);
  EXPECT_THAT(verdict.sentence(),
              HasSubstr("the executed scheme is fp8_block_fnuz, the baseline's bf16"));
}

TEST(Gate, ReportsWhatElseChangedAndStillJudges) {
  const CaseVerdict verdict = after([](CaseRecord& record) {
    record.config.hash = "feedfeedfeedfeed";
    record.config.values["BLOCK_SIZE_M"] = 64;
    auto& m = std::get<Measured>(record.outcome);
    m.check.numerics.act_out = Precision::activation_dtype;
    m.check.error.implementation.relative_l2 = 0;
  });
  EXPECT_EQ(verdict.verdict, Verdict::pass);
  EXPECT_THAT(verdict.changes,
              ElementsAre("the kernel declares other numerics (rounding points or accumulation)",
                          "other config values",
                          "other compiled code: feedfeedfeedfeed, was 0123456789abcdef",
                          "the kernel became exact: its error was 0.001"));
  EXPECT_THAT(after([](CaseRecord&) {}).changes, IsEmpty());
}

TEST(Gate, FailsWhereACaseIsNoLongerOk) {
  const CaseVerdict verdict = after([](CaseRecord& record) {
    record.repro = "moegauge run --iterate X";
    record.outcome = Unmeasured{.status = Status::timeout, .reason = "60 s passed"};
  });
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_EQ(verdict.sentence(),
            "ok in the baseline, now timeout (60 s passed): repeat it with: "
            "moegauge run --iterate X");
  for (const Status status : {Status::unsupported, Status::refused_config, Status::skipped}) {
    EXPECT_EQ(after([&](CaseRecord& r) {
                r.outcome = Unmeasured{.status = status, .reason = "why"};
              }).verdict,
              Verdict::fail);
  }
}

// A machine without the device says nothing about the kernel; one with it whose backend no longer
// serves does.
TEST(Gate, TellsAMissingDeviceFromABackendThatNoLongerServes) {
  Result result = fake_result(), baseline = fake_result();
  baseline.cases.resize(1);
  result.cases.resize(1);
  baseline.cases[0].backend = baseline.cases[0].coordinates.backend = "gpu";
  result.cases[0].coordinates.backend = "gpu";
  result.cases[0].device = "";
  const auto outcome = [&](std::vector<std::string> absent) {
    result.cases[0].outcome = Unmeasured{.status = Status::unsupported,
                                         .reason = "gpu: no driver",
                                         .absent_backends = std::move(absent)};
    return judged(result, baseline);
  };
  const Judgement without_device = outcome({"gpu"});
  EXPECT_EQ(exit_code(without_device), 4);
  EXPECT_THAT(without_device.cases[0].sentence(),
              HasSubstr("now unsupported (gpu: no driver); the baseline's device, fake device, is "
                        "not on this machine: run where it is"));
  EXPECT_EQ(exit_code(outcome({})), 1);
  EXPECT_EQ(exit_code(outcome({"another-gpu"})), 1);
}

TEST(Gate, BlamesNoKernelForABrokenMachine) {
  Result result = fake_result();
  result.cases[0].outcome =
      Unmeasured{.status = Status::infrastructure, .reason = "no device answers"};
  const Judgement judgement = judged(result, fake_result());
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::no_verdict);
  EXPECT_EQ(exit_code(judgement), 4);
}

TEST(Gate, JudgesNothingWhereACaseNeverCouldRun) {
  Result result = fake_result(), baseline = fake_result();
  for (Result* side : {&result, &baseline}) {
    side->cases[0].outcome = Unmeasured{.status = Status::unsupported, .reason = "no such unit"};
  }
  const Judgement judgement = judged(result, baseline);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::not_judged);
  EXPECT_EQ(judgement.cases[0].sentence(), "unsupported (no such unit): nothing to judge");
  EXPECT_EQ(exit_code(judgement), 0);
}

TEST(Gate, OfAResultWithNothingOkIsNoVerdict) {
  Result result = fake_result(), baseline = fake_result();
  for (Result* side : {&result, &baseline}) {
    for (CaseRecord& record : side->cases) {
      record.outcome = Unmeasured{.status = Status::unsupported, .reason = "no such unit"};
    }
  }
  EXPECT_EQ(exit_code(judged(result, baseline)), 4);
}

TEST(Gate, FailsAFaultEvenWhereTheBaselineHadItToo) {
  Result result = fake_result(), baseline = fake_result();
  for (Result* side : {&result, &baseline}) {
    side->cases[0].outcome = Unmeasured{.status = Status::crashed, .reason = "SIGSEGV"};
  }
  EXPECT_EQ(exit_code(judged(result, baseline)), 1);
}

TEST(Gate, ShowsTheErrorsOfAnInaccurateCase) {
  const CaseVerdict verdict = after([](CaseRecord& record) {
    CheckResult check = std::get<Measured>(record.outcome).check;
    check.error.implementation.relative_l2 = 0.5;
    record.outcome =
        Unmeasured{.status = Status::inaccurate, .reason = "over its limit", .check = check};
  });
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_THAT(subjects(verdict), Contains("error.implementation.relative_l2"));
}

TEST(ErrorGate, CatchesFivePercentGrowth) {
  const CaseVerdict verdict =
      after_measured([](Measured& m) { m.check.error.implementation.relative_l2 *= 1.05; });
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_EQ(verdict.sentence(),
            "error.implementation.relative_l2 grew from 0.001 to 0.00105 (1.050x, limit 1.030x): "
            "find the change that lost accuracy, or record a new baseline on purpose");
}

TEST(ErrorGate, AllowsGrowthBelowItsLimitAndFloor) {
  EXPECT_EQ(
      after_measured([](Measured& m) { m.check.error.implementation.relative_l2 *= 1.02; }).verdict,
      Verdict::pass);
}

TEST(ErrorGate, CatchesTheLossOfExactness) {
  Result baseline = fake_result();
  std::get<Measured>(baseline.cases[0].outcome).check.error.implementation = {};
  const CaseVerdict verdict = judged(fake_result(), baseline).cases[0];
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_THAT(verdict.sentence(), HasSubstr("grew from 0 to 0.001 (limit 1.030x)"));
}

TEST(ErrorGate, HoldsToTheAbsoluteLimitWithoutAnyBaseline) {
  Result result = fake_result();
  std::get<Measured>(result.cases[0].outcome).check.error.implementation.relative_l2 = 0.0031;
  const Judgement judgement = judged(result, {});
  EXPECT_EQ(exit_code(judgement), 1);
  EXPECT_EQ(judgement.cases[0].sentence(),
            "error.implementation.relative_l2 is 0.0031, over the limit 0.003: correct the kernel");
}

TEST(ErrorGate, KeepsTheNumbersBehindItsVerdict) {
  const std::vector<ErrorNumber> errors = after([](CaseRecord&) {}).errors;
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(errors[0].name, "error.implementation.relative_l2");
  EXPECT_EQ(errors[0].value, 0.001);
  EXPECT_EQ(*errors[0].limit, 0.003);
  EXPECT_EQ(*errors[0].baseline, 0.001);
  EXPECT_EQ(errors[4].name, "error.quantization.relative_l2");
  EXPECT_FALSE(errors[4].limit);
}

TEST(ErrorGate, CatchesOneBadToken) {
  const CaseVerdict verdict = after_measured([](Measured& m) {
    m.check.error.implementation.worst_token = 1;
    m.check.error.implementation.worst_token_row = 17;
  });
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_THAT(verdict.sentence(), HasSubstr("is 1, over the limit 0.01 (token 17)"));
}

TEST(ErrorGate, CatchesOutputsThatAreNotFinite) {
  const CaseVerdict verdict = after_measured([](Measured& m) {
    m.check.error.implementation.non_finite = 3;
    m.check.error.implementation.first_bad = 41;
  });
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_EQ(verdict.sentence(),
            "3 outputs are NaN or infinite where the truth is finite, the first "
            "at flat index 41: correct the kernel");
}

TEST(ErrorGate, AnErrorWithoutAFiniteValueFails) {
  const auto sentence_at = [](double error) {
    return after_measured(
               [error](Measured& m) { m.check.error.implementation.relative_l2 = error; })
        .sentence();
  };
  EXPECT_THAT(sentence_at(std::numeric_limits<double>::infinity()),
              HasSubstr("is infinite, over the limit"));
  EXPECT_THAT(sentence_at(std::numeric_limits<double>::quiet_NaN()),
              HasSubstr("is not a number, over the limit"));
}

// The format costs 0.06; a total of 0.062 is 1.0333 times that.
TEST(ErrorGate, HoldsTheTotalToWhatTheFormatCosts) {
  Result result = fake_result();
  ErrorReport& error = std::get<Measured>(result.cases[0].outcome).check.error;
  error.quantization.relative_l2 = 0.06;
  error.total.relative_l2 = 0.0617;
  EXPECT_EQ(judged(result, result).cases[0].verdict, Verdict::pass);
  error.total.relative_l2 = 0.062;
  const CaseVerdict verdict = judged(result, result).cases[0];
  EXPECT_EQ(verdict.verdict, Verdict::fail);
  EXPECT_EQ(verdict.sentence(),
            "error.total.relative_l2 is 0.062, over 1.030x the 0.06 that the "
            "format itself costs: correct the kernel");
}

TEST(ErrorGate, APolicyMayTightenWhatTheSchemeShips) {
  Policy exact = policy();
  exact.error.insert(exact.error.begin(), {.match = {.inputs = "exact"},
                                           .relative_l2 = 0,
                                           .worst_token = 0,
                                           .growth_limit = 1,
                                           .growth_floor = 0});
  Result result = fake_result();
  result.cases[0].coordinates.inputs = "exact";
  EXPECT_EQ(judged(result, result, exact).cases[0].verdict, Verdict::fail);
  EXPECT_EQ(judged(result, result, exact).cases[1].verdict, Verdict::pass);
}

}  // namespace
}  // namespace moegauge
