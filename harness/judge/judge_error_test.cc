#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/judge/judge.h"
#include "harness/judge/judge_testing.h"

namespace moegauge {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> subjects(const CaseVerdict& verdict) {
  std::vector<std::string> names;
  for (const Finding& f : verdict.findings) names.push_back(f.subject);
  return names;
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
            "error.implementation.relative_l2 grew from 0.001 to 0.00105 (1.050x, limit 1.030x); "
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

// 0.06 x 1.05 = 0.063.
TEST(ErrorGate, APolicyMayHaveATotalOfItsOwn) {
  Policy loose = policy();
  loose.total = TotalRule{.limit = 1.05, .applies_above = 0.01};
  Result result = fake_result();
  ErrorReport& error = std::get<Measured>(result.cases[0].outcome).check.error;
  error.quantization.relative_l2 = 0.06;
  error.total.relative_l2 = 0.062;
  EXPECT_EQ(judged(result, result).cases[0].verdict, Verdict::fail);
  EXPECT_EQ(judged(result, result, loose).cases[0].verdict, Verdict::pass);
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
