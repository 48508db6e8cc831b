#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/judge.h"
#include "harness/judge/judge_testing.h"

namespace moegauge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Gate, WithoutAMatchIsNoVerdict) {
  const Judgement judgement = judged(fake_result(), fake_result(), policy(), "nothing/*");
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(conclusion(judgement), "NO VERDICT: no case matched");
}

// No data is no pass: a gate whose every case is too noisy would stay green for ever.
TEST(Gate, OfNothingButInconclusiveCasesIsNoVerdict) {
  Result result = fake_result();
  for (CaseRecord& record : result.cases) scale_latency(record, 1.04);
  const Judgement judgement = judged(result, fake_result());
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(conclusion(judgement), "NO VERDICT: 3 of 3 cases inconclusive, none judged");
}

// 1 of 5 that failed is 1 of 3 that were compared.
TEST(Gate, SaysHowManyWereJudgedWhereNotAllWere) {
  Result result = fake_result();
  scale_latency(result.cases[0], 2);
  result.cases.push_back(fake_case(1000, 100));  // the baseline has none
  EXPECT_EQ(conclusion(judged(result, fake_result())),
            "FAIL: 1 of 4 cases; 3 judged, 1 could not be compared");
  result.cases.push_back(fake_case(2000, 100));
  result.cases.back().outcome = Unmeasured{.status = Status::unsupported, .reason = "no"};
  EXPECT_EQ(conclusion(judged(result, fake_result())),
            "FAIL: 1 of 5 cases; 3 judged, 1 could not be compared, 1 with nothing to judge");
  result = fake_result();
  result.cases.push_back(fake_case(1000, 100));
  EXPECT_EQ(conclusion(judged(result, fake_result())),
            "NO VERDICT: 1 of 4 cases could not be compared; 3 judged");
}

// What was cut off both files could have failed.
TEST(Gate, OfAFileThatWasCutIsNoVerdictUnlessAWholeCaseFailed) {
  Judgement judgement = judged(fake_result(), fake_result());
  judgement.cut = "now.json: cut after line 9";
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(conclusion(judgement), "NO VERDICT: now.json: cut after line 9");
  Result slower = fake_result();
  scale_latency(slower.cases[0], 2);
  judgement = judged(slower, fake_result());
  judgement.cut = "now.json: cut after line 9";
  EXPECT_EQ(exit_code(judgement), 1);
}

// With no tokens nothing is launched: its samples are zeros, which have no ratio.
TEST(Gate, OfNoTokensIsJudgedByStatusAndErrorAlone) {
  Result result = fake_result(), baseline = fake_result();
  for (Result* side : {&result, &baseline}) {
    side->cases.resize(1);
    side->cases[0] = fake_case(0, 0);
  }
  EXPECT_EQ(judged(result, baseline).cases[0].verdict, Verdict::pass);
  EXPECT_EQ(exit_code(judged(result, baseline)), 0);
  result.cases[0].outcome = Unmeasured{.status = Status::crashed, .reason = "SIGSEGV"};
  EXPECT_EQ(judged(result, baseline).cases[0].verdict, Verdict::fail);
}

TEST(Gate, OfACheckThatComparedNoRowIsNoVerdict) {
  const CaseVerdict verdict = after_measured([](Measured& m) { m.check.checked.rows = 0; });
  EXPECT_EQ(verdict.verdict, Verdict::no_verdict);
  EXPECT_THAT(verdict.sentence(), HasSubstr("no row of the output was compared"));
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

TEST(Gate, SaysWhereCachesWereNotEquallyCold) {
  const auto with_sets = [](int sets) {
    Result result = fake_result();
    std::get<Measured>(result.cases[0].outcome).telemetry["weight_sets"] = sets;
    return result;
  };
  EXPECT_THAT(judged(with_sets(8), with_sets(22)).cases[0].changes,
              ElementsAre("timed over 8 sets of weights in turn, was 22: caches were not equally "
                          "cold"));
  EXPECT_THAT(judged(with_sets(8), with_sets(8)).cases[0].changes, IsEmpty());
  EXPECT_THAT(judged(with_sets(8), fake_result()).cases[0].changes, IsEmpty()) << "nobody knows";
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

// Nothing is launched for 0 tokens: such a case cannot stand in for those that were not compared.
TEST(Gate, OfNothingComparedButZeroTokensIsNoVerdict) {
  Result result = fake_result();
  result.cases[0].coordinates.tokens = 0;
  Result baseline = result;
  EXPECT_EQ(exit_code(judged(result, baseline)), 0);
  for (CaseRecord& record : result.cases) {
    std::get<Measured>(record.outcome).latency.samples.resize(2);
  }
  const Judgement judgement = judged(result, baseline);
  EXPECT_EQ(exit_code(judgement), 4);
  EXPECT_EQ(conclusion(judgement), "NO VERDICT: 2 of 3 cases inconclusive, none judged");
}

}  // namespace
}  // namespace moegauge
