#include "harness/report/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/fake_result.h"
#include "harness/report/summary.h"

namespace moegauge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ErrorLimits fake_limits(const CaseRecord&, const CheckResult&) { return {0.001, 0.01}; }

LatencyRule five_percent() { return {.ratio_limit = 1.05, .between_runs = 0.014}; }

ReportInput input_of(std::vector<Result> results) {
  ReportInput input{.policy = {.name = "test", .confidence = 0.95, .latency = {five_percent()}},
                    .shipped = fake_limits};
  input.policy.error = {ErrorRule{.growth_limit = 1.03}};
  for (Result& result : results)
    input.files.push_back(
        {.name = "f" + std::to_string(input.files.size()) + ".json", .result = std::move(result)});
  return input;
}

// Two configs of one point: default takes 100 us, tuned 80.
Result rivals(bool interleaved) {
  Result result = fake_result();
  result.cases.resize(1);
  result.comparisons.clear();
  CaseRecord tuned = result.cases[0];
  result.cases[0].coordinates.config = "default";
  tuned.coordinates.config = "tuned";
  scale_latency(result.cases[0], 100 / result.cases[0].measured()->latency.median);
  scale_latency(tuned, 80 / tuned.measured()->latency.median);
  result.cases.push_back(tuned);
  if (interleaved) {
    result.comparisons.push_back({.point = point_id(tuned.coordinates),
                                  .a = tuned.id(),
                                  .b = result.cases[0].id(),
                                  .ratio = 0.8,
                                  .ci_low = 0.75,
                                  .ci_high = 0.9,
                                  .pairs = 9});
  }
  return result;
}

TEST(ReportRows, ACaseKeepsTheNumbersOfItsFile) {
  const Result result = fake_result();
  const ReportRows rows = rows_of(input_of({result}), {});
  ASSERT_THAT(rows.cases, SizeIs(result.cases.size()));
  for (std::size_t i = 0; i < rows.cases.size(); ++i) {
    const Measured& measured = *result.cases[i].measured();
    EXPECT_EQ(rows.cases[i]["id"], result.cases[i].id());
    EXPECT_EQ(rows.cases[i]["median"], measured.latency.median);
    EXPECT_EQ(rows.cases[i]["low"], measured.latency.ci_low);
    EXPECT_EQ(rows.cases[i]["high"], measured.latency.ci_high);
    EXPECT_EQ(rows.cases[i]["implementation"], measured.check.error.implementation.relative_l2);
    EXPECT_EQ(rows.cases[i]["limit_implementation"], 0.001);
  }
}

TEST(ReportRows, AnErrorThatIsNoNumberIsAbsent) {
  Result result = fake_result();
  std::get<Measured>(result.cases[0].outcome).check.error.total.relative_l2 = HUGE_VAL;
  EXPECT_FALSE(rows_of(input_of({result}), {}).cases[0].contains("total"));
}

TEST(ReportRows, TunedOverDefaultIsTheRatioOfTheMedians) {
  const auto pairs = rows_of(input_of({rivals(false)}), {}).pairs;
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_EQ(pairs[0]["kind"], "tuned over default");
  EXPECT_DOUBLE_EQ(pairs[0]["speedup"], 1.25);  // 100 / 80
  EXPECT_EQ(pairs[0]["interleaved"], false);
  EXPECT_FALSE(pairs[0].contains("low"));
}

TEST(ReportRows, ARatioMeasuredInTurnsIsTakenWithItsInterval) {
  const auto pairs = rows_of(input_of({rivals(true)}), {}).pairs;
  ASSERT_THAT(pairs, SizeIs(1));
  EXPECT_DOUBLE_EQ(pairs[0]["speedup"], 1.25);  // 1 / 0.8: the file holds tuned / default
  EXPECT_DOUBLE_EQ(pairs[0]["low"], 1 / 0.9);
  EXPECT_DOUBLE_EQ(pairs[0]["high"], 1 / 0.75);
}

// The medians' own intervals are 0.3% wide on either side.
TEST(ReportRows, ALoserIsOneWhoseWholeIntervalLiesBelow1) {
  const auto lost = [](Result result) { return rows_of(input_of({result}), {}).pairs[0]["lost"]; };
  Result in_turns = rivals(true);
  const auto tuned_over_default = [&](double ratio, double low, double high) {
    Comparison& c = in_turns.comparisons[0];
    c.ratio = ratio;
    c.ci_low = low;
    c.ci_high = high;
    return lost(in_turns);
  };
  EXPECT_EQ(tuned_over_default(1.1, 0.99, 1.2), false) << "it may be none";
  EXPECT_EQ(tuned_over_default(1.005, 1.002, 1.008), true) << "small and sure";
  Result apart = rivals(false);
  scale_latency(apart.cases[1], 100.4 / 80);
  EXPECT_EQ(lost(apart), false) << "the intervals of the two medians meet";
  scale_latency(apart.cases[1], 1.02);
  EXPECT_EQ(lost(apart), true);
}

TEST(ReportRows, PanelsNameOnlyWhatDiffers) {
  Result result = fake_result();
  EXPECT_THAT(rows_of(input_of({result}), {}).cases[0]["panel"].get<std::string>(),
              testing::Not(HasSubstr("balanced")));
  result.cases[0].coordinates.routing = "balanced";
  EXPECT_THAT(rows_of(input_of({result}), {}).cases[0]["panel"].get<std::string>(),
              HasSubstr("balanced"));
}

TEST(ReportRows, ATrendNeedsTwoResultsOfOneCaseAndIsRelativeToTheEarliest) {
  Result first = fake_result(), second = fake_result();
  first.machine["date"] = "2026-11-02T00:00:00+00:00";
  second.machine["date"] = "2026-11-01T00:00:00+00:00";
  for (CaseRecord& record : first.cases) scale_latency(record, 2);
  EXPECT_THAT(rows_of(input_of({first}), {}).trend, IsEmpty());
  const auto trend = rows_of(input_of({first, second}), {}).trend;
  ASSERT_THAT(trend, SizeIs(2 * first.cases.size()));
  EXPECT_DOUBLE_EQ(trend.front()["over_anchor"], 2);
  EXPECT_DOUBLE_EQ(trend.back()["over_anchor"], 1);
  EXPECT_EQ(trend.front()["limit"], 1.05);
}

TEST(ReportColumns, GiveBackEveryValue) {
  const auto table = columns_of({{{"a", "x"}, {"b", 1.5}, {"c", true}},
                                 {{"a", "y"}, {"c", true}},
                                 {{"a", "x"}, {"b", 2}, {"c", true}}});
  EXPECT_EQ(table["rows"], 3);
  EXPECT_EQ(table["columns"]["a"].dump(), R"({"words":["x","y"],"at":[0,1,0]})");
  EXPECT_EQ(table["columns"]["b"].dump(), R"({"values":[1.5,null,2]})");
  EXPECT_EQ(table["columns"]["c"].dump(), R"({"all":true})");
  EXPECT_EQ(columns_of({})["rows"], 0);
}

TEST(ReportColumns, KeepAValueOnceWhereNeighboursAreAlike) {
  std::vector<Row> rows(20, Row{{"a", "x"}, {"b", 1.25}});
  for (std::size_t i = 10; i < 20; ++i) rows[i] = {{"a", "y"}};
  const auto columns = columns_of(rows)["columns"];
  EXPECT_EQ(columns["a"].dump(), R"({"words":["x","y"],"runs":[0,10,1,10]})");
  EXPECT_EQ(columns["b"].dump(), R"({"words":[1.25],"runs":[0,10,-1,10]})");
  for (std::size_t i = 0; i < 20; ++i) rows[i]["a"] = i % 2 == 0 ? 1 : 2;
  EXPECT_THAT(columns_of(rows)["columns"]["a"].dump(), HasSubstr(R"({"words":[1,2],"at":[0,1,0)"));
}

TEST(ReportSummary, WithoutABaselineSaysSoAndWhatWasMeasured) {
  const ReportSummary summary = summary_of(input_of({fake_result()}), {});
  EXPECT_EQ(summary.level, "unknown");
  EXPECT_EQ(summary.sentence, "No verdict without a baseline: 3 of 3 cases measured");
}

TEST(ReportSummary, ATunedConfigThatLosesComesBeforeSlowCases) {
  Result result = rivals(false);
  scale_latency(result.cases[1], 150.0 / 80);
  const ReportSummary summary = summary_of(input_of({result}), {});
  ASSERT_FALSE(summary.worst.empty());
  EXPECT_EQ(summary.worst[0].id, result.cases[1].id());
  EXPECT_THAT(summary.worst[0].why, HasSubstr("loses to the default: speed-up 0.667x"));
}

TEST(ReportSummary, AgainstABaselineTheWorstFailuresComeFirstWithTheirCommands) {
  Result slow = fake_result();
  for (CaseRecord& record : slow.cases) scale_latency(record, 1.5);
  scale_latency(slow.cases[1], 2);
  ReportInput input = input_of({slow});
  input.baseline = ReportFile{.name = "base.json", .result = fake_result()};
  const Judgement judgement = judge(slow, input.baseline->result, input.policy, fake_limits);
  const ReportSummary summary = summary_of(input, {judgement});
  EXPECT_EQ(summary.level, "fail");
  EXPECT_EQ(summary.sentence, conclusion(judgement));
  ASSERT_THAT(summary.worst, SizeIs(3));
  EXPECT_EQ(summary.worst[0].id, slow.cases[1].id());
  EXPECT_EQ(summary.worst[0].repro, slow.cases[1].repro);
}

ReportInput against(Result result, Result baseline) {
  ReportInput input = input_of({std::move(result)});
  input.baseline = ReportFile{.name = "base.json", .result = std::move(baseline)};
  return input;
}

Judgement judged(const ReportInput& input) {
  return judge(input.files[0].result, input.baseline->result, input.policy, fake_limits);
}

TEST(ReportSummary, LooksFirstAtFailuresThenSlowDownsNeverAtGainsBesideThem) {
  Result now = fake_result(), then = fake_result();
  now.cases.clear();
  then.cases.clear();
  const auto add = [&](std::int64_t tokens, double ratio) {
    now.cases.push_back(fake_case(tokens, 100 * ratio));
    then.cases.push_back(fake_case(tokens, 100));
  };
  add(1, 0.5);   // improved
  add(2, 1.04);  // holds the limit of 1.05
  add(3, 1);     // passes
  add(4, 1.5);   // fails
  add(5, 1);     // skipped, below
  now.cases.back().outcome = Unmeasured{Status::skipped, "the budget was spent"};
  now.cases.push_back(fake_case(6, 100));  // no counterpart
  const ReportInput input = against(now, then);
  std::vector<std::string> ids;
  for (const WorstCase& worst : summary_of(input, {judged(input)}).worst)
    ids.push_back(worst.id.substr(worst.id.rfind('/') + 1));
  EXPECT_THAT(ids, ElementsAre("M=4", "M=2", "M=6", "M=5"));
}

TEST(ReportSummary, WhereAllIsFineTheSlowestOfItIsShown) {
  const ReportInput input = against(fake_result(), fake_result());
  EXPECT_THAT(summary_of(input, {judged(input)}).worst, SizeIs(3));
}

TEST(ReportSummary, AnotherMachineIsAChangeSinceTheBaseline) {
  Result now = fake_result(), then = fake_result();
  EXPECT_THAT(summary_of(against(now, then), {judged(against(now, then))}).changes, IsEmpty());
  for (CaseRecord& record : now.cases) record.device = "other device";
  now.machine["host_name"] = "new-host";
  then.machine["host_name"] = "old-host";
  now.context = {{"suite", "nightly"}, {"moegauge_version", "2.0"}};
  then.context = {{"suite", "quick"}, {"moegauge_version", "1.0"}};
  const ReportInput input = against(now, then);
  EXPECT_THAT(summary_of(input, {judged(input)}).changes,
              ElementsAre("device other device, was fake device", "host new-host, was old-host",
                          "suite nightly, was quick", "moegauge version 2.0, was 1.0"));
}

}  // namespace
}  // namespace moegauge
