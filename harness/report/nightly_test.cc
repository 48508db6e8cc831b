// What a report shows of a history, with a history in a file.
#include "harness/report/nightly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/history/history_testing.h"
#include "harness/report/rows.h"
#include "harness/report/summary.h"

namespace moegauge {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ErrorLimits fake_limits(const CaseRecord&, const CheckResult&) { return {0.001, 0.01}; }

class ReportOfAHistory : public HistoryFile {
 protected:
  ReportInput input_of(Result result, const NightlyRoom& room = {}) {
    ReportInput input{.policy = {.name = "test", .confidence = 0.95}, .shipped = fake_limits};
    input.policy.latency = {LatencyRule{.ratio_limit = 1.05, .between_runs = 0.014}};
    input.policy.error = {ErrorRule{.growth_limit = 1.03}};
    input.files.push_back({.name = "now.json", .result = std::move(result)});
    input.nightly = nightly_of(*open(), "h.db", {&input.files[0].result}, room);
    return input;
  }
  static std::vector<Row> with(const std::vector<Row>& rows, const char* field) {
    std::vector<Row> found;
    for (const Row& row : rows)
      if (row.contains(field)) found.push_back(row);
    return found;
  }
};

TEST_F(ReportOfAHistory, HasARowForEachCaseAndNightAndOneForTheResult) {
  add_nights(0, 12);
  const Result now = night(12);
  const std::vector<Row> rows = rows_of(input_of(now), {}).history;
  ASSERT_THAT(rows, SizeIs(3 * 13));
  for (const CaseRecord& record : now.cases) {
    std::vector<Row> of_case;
    for (const Row& row : rows)
      if (row["id"] == record.id()) of_case.push_back(row);
    ASSERT_THAT(of_case, SizeIs(13));
    const double anchor = of_case[0]["median"];
    for (int n = 0; n < 13; ++n) {
      const Row& row = of_case[static_cast<std::size_t>(n)];
      const Result measured = night(n);
      const auto same = std::ranges::find_if(
          measured.cases, [&](const CaseRecord& one) { return one.id() == record.id(); });
      const LatencySummary& latency = same->measured()->latency;
      EXPECT_EQ(row["median"], latency.median);
      EXPECT_NEAR(row["low"], latency.ci_low, 1e-5 * latency.ci_low);
      EXPECT_NEAR(row["high"], latency.ci_high, 1e-5 * latency.ci_high);
      EXPECT_NEAR(row["over_anchor"], latency.median / anchor, 1e-5);
      EXPECT_EQ(row["date"], utc_text(first_night + n * day + 3600));  // when it was measured
      EXPECT_EQ(row["limit"], 1.05);
      EXPECT_EQ(row.contains("anchor_run"), n == 0);
      EXPECT_EQ(row.contains("now"), n == 12);
      EXPECT_EQ(row["panel"].get<std::string>().ends_with("M=" + row["tokens"].dump()), true);
    }
  }
}

TEST_F(ReportOfAHistory, MarksTheRunSinceWhichItIsSlower) {
  add_nights(0, 15);
  add_nights(15, 30, [](Result& result) {
    scale_latency(result.cases[1], 1.2);
    result.cases[1].config.hash = "other";
  });
  const std::vector<Row> rows = rows_of(input_of(night(30)), {}).history;
  const std::vector<Row> changed = with(rows, "change");
  ASSERT_THAT(changed, SizeIs(1));
  EXPECT_EQ(changed[0]["id"], night(0).cases[1].id());
  EXPECT_EQ(changed[0]["run"], 16);
  EXPECT_NEAR(changed[0]["change_size"], 0.2, 0.01);
  EXPECT_THAT(changed[0]["change"].get<std::string>(), HasSubstr("(kernel)"));
  // What changed stands first.
  EXPECT_EQ(rows[0]["id"], changed[0]["id"]);
}

TEST_F(ReportOfAHistory, DrawsAResultThatItHoldsOnce) {
  add_nights(0, 6);
  const std::vector<Row> rows = rows_of(input_of(night(5)), {}).history;
  EXPECT_THAT(rows, SizeIs(3 * 6));
  EXPECT_THAT(with(rows, "now"), IsEmpty());
}

TEST_F(ReportOfAHistory, ShowsANightOnWhichACaseFailedWithoutALatency) {
  add_nights(0, 3);
  add(night(3, [](Result& result) {
    result.cases[0].outcome = Unmeasured{Status::crashed, "signal 11"};
  }));
  const std::vector<Row> failed = with(rows_of(input_of(night(4)), {}).history, "failed");
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0]["failed"], "crashed");
  EXPECT_FALSE(failed[0].contains("median"));
  EXPECT_FALSE(failed[0].contains("over_anchor"));
}

TEST_F(ReportOfAHistory, IsInTheOrderOfCommitsWhereThatIsNotTheOrderOfMeasuring) {
  add_nights(0, 3);
  add(night(1, [](Result& result) {  // an old commit, measured again later
    result.machine["date"] = utc_text(first_night + 10 * day).substr(0, 19) + "+00:00";
  }));
  const std::vector<Row> rows = rows_of(input_of(night(11)), {}).history;
  EXPECT_EQ(rows[0]["date"], utc_text(first_night));
  EXPECT_EQ(rows[1]["date"], utc_text(first_night + day));
  EXPECT_EQ(rows[2]["date"], utc_text(first_night + day));
}

TEST_F(ReportOfAHistory, ShowsFewerRunsAndThenFewerCasesWhereThereIsNoRoom) {
  add_nights(0, 12);
  const ReportInput fewer_runs =
      input_of(night(12), {.points = 24, .most_runs = 120, .least_runs = 2});
  EXPECT_THAT(rows_of(fewer_runs, {}).history, SizeIs(3 * (8 + 1)));
  const ReportInput fewer_cases =
      input_of(night(12), {.points = 24, .most_runs = 120, .least_runs = 12});
  EXPECT_THAT(rows_of(fewer_cases, {}).history, SizeIs(2 * 13));
  EXPECT_THAT(summary_of(fewer_cases, {}).warnings,
              testing::Contains(HasSubstr("no room for 1 more")));
}

TEST_F(ReportOfAHistory, ShowsCasesOfTooFewSamplesForAnAnchorOverTheirFirstRun) {
  const auto one_sample = [](Result& result) {
    for (CaseRecord& record : result.cases) {
      LatencySummary& latency = std::get<Measured>(record.outcome).latency;
      latency.samples = {latency.median};
    }
  };
  add_nights(0, 3, one_sample);
  const std::vector<Row> rows = rows_of(input_of(night(3, one_sample)), {}).history;
  ASSERT_THAT(rows, SizeIs(3 * 4));
  EXPECT_EQ(rows[0]["over_anchor"], 1);
  EXPECT_THAT(with(rows, "anchor_run"), IsEmpty());
  EXPECT_THAT(with(rows, "failed"), IsEmpty());
}

TEST_F(ReportOfAHistory, SaysWhichCasesItDoesNotKnow) {
  add_nights(0, 3);
  Result elsewhere = night(3);
  for (CaseRecord& record : elsewhere.cases) record.device = "other device";
  const ReportInput input = input_of(elsewhere);
  EXPECT_THAT(rows_of(input, {}).history, IsEmpty());
  EXPECT_THAT(summary_of(input, {}).warnings,
              testing::ElementsAre("h.db: no run of 3 cases on the device of these results"));
}

}  // namespace
}  // namespace moegauge
