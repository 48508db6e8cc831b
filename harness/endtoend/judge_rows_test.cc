#include "harness/endtoend/judge_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/endtoend/judging_testing.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

EndToEndRow serve(const std::map<std::string, double>& numbers, const std::string& lengths = "1-1",
                  const std::string& concurrency = "1") {
  return {.op = "serve",
          .model = "m",
          .labels = {{"input_output", lengths}, {"concurrency", concurrency}},
          .numbers = numbers};
}

EndToEndRow eval(double value, std::optional<double> error, std::optional<double> questions = {}) {
  EndToEndRow row{
      .op = "eval", .model = "m", .labels = {{"task", "t"}}, .numbers = {{"value", value}}};
  if (error) row.numbers["stderr"] = *error;
  if (questions) row.numbers["samples"] = *questions;
  return row;
}

Result of(std::vector<EndToEndRow> rows) { return {.end_to_end = std::move(rows)}; }

CaseVerdict single(const EndToEndRow& now, const EndToEndRow& then, const Policy& policy) {
  const Judgement judgement = judged_end_to_end(of({now}), of({then}), policy);
  EXPECT_THAT(judgement.cases, SizeIs(1));
  return judgement.cases.at(0);
}

TEST(ServingGate, TimesShouldFallAndRatesRise) {
  const auto verdict = [](const char* name, double now) {
    return single(serve({{name, now}}), serve({{name, 100}}), policy_of(0.02, 0)).verdict;
  };
  EXPECT_EQ(verdict("ttft_ms.mean", 103), Verdict::fail);
  EXPECT_EQ(verdict("ttft_ms.mean", 97), Verdict::improved);
  EXPECT_EQ(verdict("ttft_ms.mean", 101), Verdict::pass);
  EXPECT_EQ(verdict("requests_per_s", 103), Verdict::improved);
  EXPECT_EQ(verdict("total_tokens_per_s_per_gpu", 97), Verdict::fail);
}

TEST(ServingGate, ThePolicyHasABandPerNumber) {
  Policy policy = policy_of(0.02, 0);
  policy.serving = {{.match = {"*.p99"}, .band = 0.1}, {.band = 0.02}};
  const Judgement judgement =
      judged_end_to_end(of({serve({{"ttft_ms.p99", 108}, {"ttft_ms.mean", 108}})}),
                        of({serve({{"ttft_ms.p99", 100}, {"ttft_ms.mean", 100}})}), policy);
  ASSERT_THAT(judgement.cases, SizeIs(2));
  EXPECT_EQ(judgement.cases[0].id, "serve/m/input_output=1-1/concurrency=1/ttft_ms.mean");
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_EQ(judgement.cases[1].verdict, Verdict::pass);
}

TEST(ServingGate, OtherAmountsOfWorkAndOtherMachinesAreNotCompared) {
  EXPECT_THAT(single(serve({{"requests", 10}, {"ttft_ms.mean", 1}}),
                     serve({{"requests", 20}, {"ttft_ms.mean", 1}}), policy_of(0.02, 0))
                  .sentence(),
              HasSubstr("10 requests, the baseline's 20"));
  const auto sentence = [](const char* amount, double now, double then) {
    const CaseVerdict verdict =
        single(serve({{amount, now}, {"total_tokens_per_s_per_gpu", 9}, {"ttft_ms.mean", 1}}),
               serve({{amount, then}, {"total_tokens_per_s_per_gpu", 9}, {"ttft_ms.mean", 1}}),
               policy_of(0.02, 0));
    EXPECT_EQ(verdict.verdict, Verdict::no_verdict);
    return verdict.sentence();
  };
  EXPECT_THAT(sentence("input_tokens", 160000, 1280000),
              HasSubstr("160000 input tokens in all, the baseline's 1280000"));
  EXPECT_THAT(sentence("output_tokens", 1280000, 160000),
              HasSubstr("1280000 output tokens in all, the baseline's 160000"));
  EXPECT_THAT(sentence("gpus", 8, 4), HasSubstr("8 GPUs, the baseline's 4"));
  // Where answers end at their last word, two runs of one work are not alike to the token.
  EXPECT_EQ(single(serve({{"output_tokens", 1005}, {"ttft_ms.mean", 1}}),
                   serve({{"output_tokens", 1000}, {"ttft_ms.mean", 1}}), policy_of(0.02, 0))
                .verdict,
            Verdict::pass);
  Result here = of({serve({{"ttft_ms.mean", 1}})}), there = here;
  here.context = {{"measured_on", "A"}};
  there.context = {{"measured_on", "B"}};
  const Judgement judgement = judged_end_to_end(here, there, policy_of(0.02, 0));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::no_verdict);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("two machines are no before and after"));
}

TEST(ServingGate, RequestsThatFailAreNoGain) {
  const Judgement judgement =
      judged_end_to_end(of({serve({{"failed", 3}, {"ttft_ms.mean", 50}})}),
                        of({serve({{"ttft_ms.mean", 100}})}), policy_of(0.02, 0));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::fail);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("3 requests failed, the baseline's 0"));
  // Also where so fewer were served.
  const CaseVerdict fewer =
      single(serve({{"requests", 150}, {"failed", 10}, {"ttft_ms.mean", 50}}),
             serve({{"requests", 160}, {"failed", 0}, {"ttft_ms.mean", 100}}), policy_of(0.02, 0));
  EXPECT_EQ(fewer.verdict, Verdict::fail);
  EXPECT_THAT(fewer.sentence(), HasSubstr("10 requests failed, the baseline's 0"));
}

TEST(ServingGate, RatesPerGpuStandForRates) {
  const auto row = [](double total, double per_gpu) {
    return serve({{"total_tokens_per_s", total}, {"total_tokens_per_s_per_gpu", per_gpu}});
  };
  const CaseVerdict verdict = single(row(200, 100), row(100, 100), policy_of(0.02, 0));
  EXPECT_EQ(verdict.number->name, "total_tokens_per_s_per_gpu");
  EXPECT_EQ(verdict.verdict, Verdict::pass);
}

TEST(ServingGate, WhatIsOnOneSideOnlyHasNoVerdict) {
  const Judgement judgement = judged_end_to_end(
      of({serve({{"ttft_ms.mean", 1}}, "1-1"), serve({{"ttft_ms.mean", 1}}, "2-2")}),
      of({serve({{"ttft_ms.mean", 1}, {"itl_ms.mean", 1}}, "1-1"),
          serve({{"ttft_ms.mean", 1}}, "4-4")}),
      policy_of(0.02, 0));
  ASSERT_THAT(judgement.cases, SizeIs(4));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::pass);
  EXPECT_THAT(judgement.cases[1].sentence(), HasSubstr("the baseline has itl_ms.mean"));
  EXPECT_THAT(judgement.cases[2].sentence(), HasSubstr("the baseline has no such point"));
  EXPECT_THAT(judgement.cases[3].sentence(), HasSubstr("absent from the result"));
  EXPECT_EQ(exit_code(judgement), 4);
}

TEST(ServingGate, AnotherNameOfTheModelIsPointedOut) {
  EndToEndRow other = serve({{"ttft_ms.mean", 1}});
  other.model = "n";
  const Judgement judgement =
      judged_end_to_end(of({serve({{"ttft_ms.mean", 1}})}), of({other}), policy_of(0.02, 0));
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("of the model n: ingest one with --model"));
}

TEST(ServingGate, SeveralVariantsOfAPointInOneFileAreAmbiguous) {
  EndToEndRow a = serve({{"ttft_ms.mean", 1}}), b = a;
  a.labels["variant"] = "Untuned";
  b.labels["variant"] = "Tuned";
  const Judgement judgement = judged_end_to_end(of({a, b}), of({a}), policy_of(0.02, 0));
  EXPECT_THAT(judgement.cases[0].sentence(),
              HasSubstr("the result holds several variants of it (Untuned, Tuned)"));
}

TEST(ServingGate, SeveralRunsAreJudgedByTheirMedian) {
  const std::vector<Result> runs = {of({serve({{"ttft_ms.mean", 100}})}),
                                    of({serve({{"ttft_ms.mean", 101}})}),
                                    of({serve({{"ttft_ms.mean", 900}})})};
  Judgement judgement;
  judge_end_to_end(runs, std::span(runs.data(), 1), policy_of(0.02, 0), "*", judgement);
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::pass);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("medians of 3 and 1 runs"));
}

TEST(ServingGate, ManyRequestsAtOnceThatServeLessAreSuspect) {
  const auto rate = [](double value, const char* concurrency) {
    return serve({{"total_tokens_per_s", value}}, "8K/1K", concurrency);
  };
  const Result then = of({rate(100, "4"), rate(200, "8"), rate(300, "16")});
  Result now = then;
  now.end_to_end[2].numbers["total_tokens_per_s"] = 90;
  const Judgement judgement = judged_end_to_end(now, then, policy_of(0.02, 0));
  EXPECT_THAT(judgement.cases[2].number->suspect,
              HasSubstr("less than half of that of input_output=8K/1K concurrency=8"));
  EXPECT_EQ(judgement.cases[2].verdict, Verdict::fail);  // suspect excuses no loss
  EXPECT_EQ(judgement.cases[1].number->suspect, "");
}

TEST(ServingGate, TwentyThousandPointsTakeNoLongerThanTheirNumber) {
  Result now, then;
  for (int i = 1; i <= 20'000; ++i) {
    now.end_to_end.push_back(serve({{"ttft_ms.mean", i}}, std::to_string(i) + "-1"));
    then.end_to_end.push_back(serve({{"ttft_ms.mean", i}}, std::to_string(i) + "-1"));
    then.end_to_end.back().model = "other";
  }
  now.end_to_end[9].numbers["ttft_ms.mean"] = 23;
  EXPECT_THAT(judged_end_to_end(now, then, policy_of(0.02, 0)).cases, SizeIs(40'000));
  then = now;
  const Judgement judgement = judged_end_to_end(now, then, policy_of(0.02, 0));
  ASSERT_THAT(judgement.cases, SizeIs(20'000));
  EXPECT_THAT(
      judgement.cases[9].number->suspect,
      HasSubstr("23 ms is 2.1 times that of input_output=11-1 concurrency=1, which is more"));
  EXPECT_EQ(judgement.cases[8].number->suspect, "");
}

TEST(ServingGate, LengthsThatCannotBeOrderedAreNeverSuspect) {
  const Result result =
      of({serve({{"e2e_ms.mean", 900}}, "100-900"), serve({{"e2e_ms.mean", 100}}, "900-100"),
          serve({{"e2e_ms.mean", 1}}, "long")});
  const Judgement judgement = judged_end_to_end(result, result, policy_of(0.02, 0));
  for (const CaseVerdict& verdict : judgement.cases) EXPECT_EQ(verdict.number->suspect, "");
}

TEST(AccuracyGate, FiftyQuestionsNeverDecideAOnePercentQuestion) {
  for (const double value : {0.5, 0.9, 0.98, 1.0}) {
    const EndToEndRow row = eval(value, std::sqrt(value * (1 - value) / 49), 50);
    const CaseVerdict verdict = single(row, row, policy_of(0, 0.01));
    EXPECT_EQ(verdict.verdict, Verdict::inconclusive) << value;
    EXPECT_THAT(verdict.sentence(), HasSubstr("50 questions against 50"));
    EXPECT_THAT(verdict.sentence(), HasSubstr("would have been seen"));
    EXPECT_GT(*verdict.number->smallest_seen, 0.01) << value;
  }
  // Nor do they with a log, even where every answer is alike.
  EndToEndRow logged = eval(1, 0, 50);
  logged.questions = Questions{.sha256 = "q"};
  for (int i = 0; i < 50; ++i) logged.questions->right.push_back(i);
  EXPECT_EQ(single(logged, logged, policy_of(0, 0.01)).verdict, Verdict::inconclusive);
}

TEST(AccuracyGate, NoErrorOfAnUnknownNumberOfQuestionsIsNoEvidence) {
  EXPECT_EQ(single(eval(1, 0), eval(1, 0), policy_of(0, 0.01)).verdict, Verdict::no_verdict);
  EXPECT_EQ(single(eval(1, {}), eval(1, 0.1), policy_of(0, 0.01)).verdict, Verdict::no_verdict);
}

TEST(AccuracyGate, SurelyWorseFailsSurelyBetterIsAnImprovement) {
  EXPECT_EQ(single(eval(0.80, 0.007), eval(0.90, 0.007), policy_of(0, 0.02)).verdict,
            Verdict::fail);
  EXPECT_EQ(single(eval(0.90, 0.007), eval(0.80, 0.007), policy_of(0, 0.02)).verdict,
            Verdict::improved);
  EXPECT_EQ(single(eval(0.90, 0.007), eval(0.80, 0.007), policy_of(0, 0.02, true)).verdict,
            Verdict::fail);  // of a control
  // A control must be surely within the margin either way.
  EXPECT_EQ(single(eval(0.91, 0.007), eval(0.90, 0.007), policy_of(0, 0.02, true)).verdict,
            Verdict::inconclusive);
}

TEST(AccuracyGate, LessIsBetterWhereTheMetricSaysSo) {
  EndToEndRow now = eval(12.5, 0.01), then = eval(12.0, 0.01);
  now.lower_is_better = then.lower_is_better = true;
  EXPECT_EQ(single(now, then, policy_of(0, 0.1)).verdict, Verdict::fail);
  EXPECT_EQ(single(then, now, policy_of(0, 0.1)).verdict, Verdict::improved);
}

EndToEndRow logged(const std::vector<std::int64_t>& right, const std::vector<std::int64_t>& wrong,
                   const std::string& digest = "q") {
  const double n = static_cast<double>(right.size() + wrong.size());
  const double p = static_cast<double>(right.size()) / n;
  EndToEndRow row = eval(p, std::sqrt(p * (1 - p) / (n - 1)), n);
  row.questions = Questions{.right = right, .wrong = wrong, .sha256 = digest};
  return row;
}

std::vector<std::int64_t> range(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = from; i < to; ++i) all.push_back(i);
  return all;
}

TEST(AccuracyGate, TheSameQuestionsArePairedAndDecideWhatTwoErrorsDoNot) {
  // 1000 questions, 800 right in both, 4 lost and 6 won.
  const EndToEndRow then = logged(range(0, 804), range(804, 1000));
  auto right = range(4, 810);
  auto wrong = range(810, 1000);
  wrong.insert(wrong.begin(), {0, 1, 2, 3});
  const CaseVerdict verdict = single(logged(right, wrong), then, policy_of(0, 0.01));
  EXPECT_EQ(verdict.verdict, Verdict::pass);
  EXPECT_THAT(verdict.sentence(), HasSubstr("of the same 1000 questions 4 were lost and 6 won"));
  // P(X >= 4 of 10) = 1 - (1 + 10 + 45 + 120) / 1024
  EXPECT_NEAR(*verdict.number->mcnemar_p, 1 - 176.0 / 1024, 1e-12);
  // Unpaired it is open.
  EXPECT_EQ(single(logged(right, wrong, "other"), then, policy_of(0, 0.01)).verdict,
            Verdict::inconclusive);
}

TEST(AccuracyGate, PairedQuestionsAreAskedForByTheShareThatDiffers) {
  // 100 questions, 80 right in both, 1 lost and 1 won: z = 1.6449 + 0.8416, 0.02 * (z / 0.01)^2 is
  // 1237, where the scores' own spread of 2 * 0.81 * 0.19 would ask for 19000.
  const EndToEndRow then = logged(range(0, 81), range(81, 100));
  auto wrong = range(82, 100);
  wrong.insert(wrong.begin(), 0);
  const CaseVerdict verdict = single(logged(range(1, 82), wrong), then, policy_of(0, 0.01));
  EXPECT_EQ(verdict.verdict, Verdict::inconclusive);
  EXPECT_THAT(verdict.sentence(), HasSubstr("ask about 1300 questions a side"));
}

TEST(AccuracyGate, AFileOfTheHarnessAgainstAnotherRunsLog) {
  const Result a = ingested({"samples_tiny_sums_2026-11-30T00-00-00.000001.jsonl"});
  const Result b = ingested({"samples_tiny_sums_2026-11-30T00-00-00.000002.jsonl"});
  const Judgement judgement = judged_end_to_end(b, a, policy_of(0, 0.01));
  EXPECT_THAT(judgement.cases[0].sentence(),
              HasSubstr("of the same 4 questions 2 were lost and 0 won (McNemar p = 0.25"));
  EXPECT_EQ(judgement.cases[0].verdict, Verdict::inconclusive);
}

TEST(AccuracyGate, SeveralRunsOfTheSameQuestionsDoNotHalveTheError) {
  const std::vector<Result> runs = {of({eval(0.9553, 0.0057)}), of({eval(0.9598, 0.0054)})};
  Judgement judgement;
  judge_end_to_end(runs, std::span(runs.data(), 1), policy_of(0, 0.02), "*", judgement);
  const NumberJudgement& number = *judgement.cases[0].number;
  EXPECT_DOUBLE_EQ(number.result, (0.9553 + 0.9598) / 2);
  EXPECT_EQ(number.result_error, 0.0057);
  EXPECT_THAT(judgement.cases[0].sentence(), HasSubstr("means of 2 and 1 runs"));
}

TEST(EndToEndGate, AFilterChoosesByTheNameOfTheVerdict) {
  const Result result = of({serve({{"ttft_ms.mean", 1}, {"itl_ms.mean", 1}}), eval(0.5, 0.01)});
  EXPECT_THAT(judged_end_to_end(result, result, policy_of(0, 0), "*/ttft_ms.*").cases, SizeIs(1));
  EXPECT_THAT(judged_end_to_end(result, result, policy_of(0, 0), "eval/*").cases, SizeIs(1));
}

}  // namespace
}  // namespace moegauge
