#include "harness/history/trend.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "harness/history/history_testing.h"
#include "harness/history/series_testing.h"

namespace moegauge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class HistoryTrend : public HistoryFile {
 protected:
  Trend trend(const TrendSettings& settings = {}) const {
    const auto store = open();
    return trends(*store, store->runs(), fake_case(1, 1).id(), "*", settings).at(0);
  }
  std::string text(const Trend& of, std::size_t shown = 100) const {
    return trend_text(of, open()->runs(), shown);
  }
  static std::function<void(Result&)> slower(double factor, const std::string& kernel = "") {
    return [=](Result& result) {
      scale_latency(result.cases[0], factor);
      if (!kernel.empty()) result.cases[0].config.hash = kernel;
    };
  }
};

TEST_F(HistoryTrend, SaysWhereHowMuchAndThatTheKernelChanged) {
  add_nights(0, 20);
  add_nights(20, 35, slower(1.08, "fedcba9876543210"));
  const Trend found = trend();
  ASSERT_THAT(found.changes, SizeIs(1));
  const TrendChange& change = found.changes[0];
  EXPECT_EQ(change.subject, "latency");
  EXPECT_EQ(found.points[change.last_before].run, 20);
  EXPECT_EQ(found.points[change.first_after].run, 21);
  EXPECT_EQ(change.runs_before, 20u);
  EXPECT_EQ(change.runs_after, 15u);
  EXPECT_NEAR(*change.size(), 0.08, 0.01);
  EXPECT_EQ(change.cause(), "kernel");
  EXPECT_THAT(text(found), AllOf(HasSubstr("latency rose by "), HasSubstr("commit commit-19)"),
                                 HasSubstr("commit commit-20); the kernel changed there")));
}

TEST_F(HistoryTrend, FlagsWhatNoChangeOfCodeExplains) {
  add_nights(0, 10);
  add_nights(10, 20, slower(1, "fedcba9876543210"));  // ten runs before the change
  add_nights(20, 35, slower(1.08, "fedcba9876543210"));
  const Trend found = trend();
  ASSERT_THAT(found.changes, SizeIs(1));
  EXPECT_TRUE(found.changes[0].environment());
  EXPECT_THAT(text(found), HasSubstr("environment: neither kernel nor config changed there"));
}

TEST_F(HistoryTrend, TellsAChangeOfConfigFromOneOfTheKernel) {
  add_nights(0, 20);
  add_nights(20, 35, [](Result& result) {
    scale_latency(result.cases[0], 0.9);
    result.cases[0].config.values["BLOCK_SIZE_M"] = 64;
  });
  EXPECT_EQ(trend().changes.at(0).cause(), "config");
}

TEST_F(HistoryTrend, FindsChangesOfErrorsWhichAreTheSameEveryNight) {
  add_nights(0, 20);
  add_nights(20, 30, [](Result& result) {
    auto& error = std::get<Measured>(result.cases[0].outcome).check.error;
    error.implementation = fake_error(0.0011, 0.004);
  });
  const Trend found = trend();
  ASSERT_THAT(found.changes, SizeIs(2));
  EXPECT_EQ(found.changes[0].subject, "error.implementation.relative_l2");
  EXPECT_NEAR(*found.changes[0].size(), 0.1, 1e-12);
  EXPECT_EQ(found.changes[1].subject, "error.implementation.worst_token");
  EXPECT_NEAR(*found.changes[1].size(), 1, 1e-12);
}

TEST_F(HistoryTrend, OfAnErrorThatWasNoneHasNoSize) {
  const auto exact = [](Result& result) {
    std::get<Measured>(result.cases[0].outcome).check.error.implementation = fake_error(0, 0);
  };
  add_nights(0, 15, exact);
  add_nights(15, 30);
  const Trend found = trend();
  ASSERT_THAT(found.changes, SizeIs(2));
  EXPECT_FALSE(found.changes[0].size());
  EXPECT_TRUE(trend_json(found, open()->runs())["changes"][0]["percent"].is_null());
  EXPECT_THAT(text(found), HasSubstr("from 0"));
}

TEST_F(HistoryTrend, LeavesOutChangesBelowTheSizeAskedFor) {
  add_nights(0, 20);
  add_nights(20, 40, slower(1.08));
  TrendSettings settings;
  settings.least_size = 0.10;
  EXPECT_THAT(trend(settings).changes, IsEmpty());
}

TEST_F(HistoryTrend, IsOfRunsThatAreOkAndShowsTheOthers) {
  add_nights(0, 20);
  add_nights(20, 26, [](Result& result) {
    result.cases[0].outcome = Unmeasured{.status = Status::crashed, .reason = "signal 11"};
  });
  add_nights(26, 40);
  const Trend found = trend();
  EXPECT_THAT(found.points, SizeIs(40));
  EXPECT_THAT(found.changes, IsEmpty());
  EXPECT_THAT(text(found), HasSubstr("crashed"));
}

TEST_F(HistoryTrend, SaysWhenACaseIsGone) {
  add_nights(0, 10);
  EXPECT_FALSE(trend().vanished);
  add_nights(10, 13, [](Result& result) { result.cases.erase(result.cases.begin()); });
  const Trend found = trend();
  EXPECT_TRUE(found.vanished);
  EXPECT_EQ(found.runs_since, 3u);
  EXPECT_THAT(text(found), HasSubstr("gone: last seen in run 10 (2026-09-30, commit commit-9)"));
  add_nights(13, 14, [](Result& result) {
    result.cases.clear();
    result.cases.push_back(fake_case(5, 10));
    result.context[0].second = "another suite";
  });
  EXPECT_EQ(trend().runs_since, 3u) << "which does not measure it";
}

TEST_F(HistoryTrend, LooksAtTheNewestRuns) {
  add_nights(0, 20);
  add_nights(20, 60, slower(1.08));
  TrendSettings settings;
  settings.last = 30;
  const Trend found = trend(settings);
  EXPECT_THAT(found.points, SizeIs(30));
  EXPECT_EQ(found.points[0].run, 31);
  EXPECT_THAT(found.changes, IsEmpty());
  EXPECT_EQ(found.anchor->run, 1) << "which stays where it was";
  EXPECT_THAT(text(found, 5), AllOf(HasSubstr("the last 5 of 30 runs"), Not(HasSubstr("\n 31  "))));
}

// Every series of these kinds is a case of the same runs.
TEST_F(HistoryTrend, GoesOnUnderANewNameAndEndsWhereACaseDid) {
  std::vector<Series> list;
  for (Series& series : all_series()) {
    if (series.kind == "renamed" || series.kind == "vanished") list.push_back(std::move(series));
  }
  ASSERT_EQ(list.size(), 12u);
  const auto as_case = [&](std::size_t i, std::size_t run) {
    CaseRecord record = fake_case(static_cast<std::int64_t>(i + 1), list[i].points[run].median);
    const bool renamed =
        list[i].kind == "renamed" && run >= static_cast<std::size_t>(list[i].renamed_at);
    if (renamed) record.coordinates.model = "new-model";
    return record;
  };
  std::vector<HistoryRename> renames;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind != "renamed") continue;
    renames.push_back({.from = as_case(i, 0).id(), .to = as_case(i, 119).id()});
  }
  for (std::size_t run = 0; run < 120; ++run) {
    add(night(static_cast<int>(run), [&](Result& result) {
      result.cases.clear();
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (run < list[i].points.size()) result.cases.push_back(as_case(i, run));
      }
    }));
  }
  open()->rename(renames);
  const auto store = open();
  for (const Trend& found : trends(*store, store->runs(), "*", "*", {})) {
    if (found.older_names.empty()) {
      EXPECT_TRUE(found.vanished);
      EXPECT_EQ(found.runs_since, 30u);
      EXPECT_THAT(found.changes, IsEmpty());
      continue;
    }
    EXPECT_THAT(found.points, SizeIs(120));
    ASSERT_THAT(found.changes, SizeIs(1));
    EXPECT_NEAR(static_cast<double>(found.changes[0].first_after), 80, 10);
    EXPECT_NEAR(*found.changes[0].size(), 0.06, 0.015);
  }
}

}  // namespace
}  // namespace moegauge
