// Change points on the series of results/series (scripts/make_series.py): how often injected
// changes are found, and how often there is an alarm where nothing changed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/series_testing.h"
#include "harness/history/trend.h"
#include "harness/statistics/distributions.h"

namespace moegauge {
namespace {

// A change near enough to where one was made, of its sign.
bool found(const Series& series, const std::vector<TrendChange>& changes) {
  return std::ranges::any_of(changes, [&](const TrendChange& change) {
    const auto at = static_cast<std::int64_t>(change.first_after);
    return change.after > change.before && std::abs(at - series.at) <= 10;
  });
}

struct Count {
  std::size_t hits = 0, all = 0;
  double rate() const { return static_cast<double>(hits) / static_cast<double>(all); }
};

TEST(TrendSeries, HoldFewAlarmsWhereNothingChanged) {
  std::map<std::string, Count> alarms;
  Count all;
  for (const Series& series : all_series()) {
    if (series.kind != "quiet" && series.kind != "spike" && series.kind != "vanished") continue;
    const bool alarm = !trend_changes(series.points, {}).empty();
    Count& count = alarms[series.kind + ", " + series.noise];
    for (Count* c : {&count, &all}) {
      c->hits += alarm;
      ++c->all;
    }
  }
  for (const auto& [what, count] : alarms) {
    std::printf("  false alarms, %-24s %zu of %zu series\n", what.c_str(), count.hits, count.all);
  }
  const double upper = binomial_upper_limit(all.hits, all.all, 0.95);
  std::printf("  false alarms in all: %zu of %zu series of 120 runs; at most %.1f%% (95%%)\n",
              all.hits, all.all, 100 * upper);
  // Each series' first test has a level of 0.1%.
  EXPECT_LE(all.hits, 2u);
  EXPECT_EQ(all.all, 193u);
}

TEST(TrendSeries, HoldStepsThatAreFound) {
  std::map<std::pair<std::string, std::int64_t>, Count> detected;
  for (const Series& series : all_series()) {
    if (series.kind != "step") continue;
    Count& count = detected[{series.noise, series.percent}];
    count.hits += found(series, trend_changes(series.points, {}));
    ++count.all;
  }
  for (const auto& [what, count] : detected) {
    std::printf("  found, %s, step of %2lld%%: %zu of %zu\n", what.first.c_str(),
                static_cast<long long>(what.second), count.hits, count.all);
    const std::int64_t certain = what.first == "normal 0.3%" ? 2 : 3;
    if (what.second < certain) continue;
    EXPECT_EQ(count.hits, count.all) << what.first << what.second;
  }
  EXPECT_EQ(detected.size(), 20u);
}

TEST(TrendSeries, HoldStepsWhoseSizeIsMeasured) {
  for (const Series& series : all_series()) {
    if (series.kind != "step" || series.percent < 5) continue;
    const auto changes = trend_changes(series.points, {});
    ASSERT_FALSE(changes.empty());
    // Medians of 40 and more runs: their difference has a standard error of 0.4% at most.
    EXPECT_NEAR(*changes[0].size(), 0.01 * static_cast<double>(series.percent), 0.015);
    EXPECT_EQ(changes[0].cause(), "environment") << "no hash differs in these series";
  }
}

TEST(TrendSeries, HoldDriftsThatShowAsStepsOfOneSign) {
  std::size_t drifts = 0;
  for (const Series& series : all_series()) {
    if (series.kind != "drift") continue;
    ++drifts;
    const auto changes = trend_changes(series.points, {});
    ASSERT_FALSE(changes.empty());
    for (const TrendChange& change : changes) EXPECT_GT(change.after, change.before);
    EXPECT_GT(changes.back().after / changes.front().before, 1.04) << "of 8% in all";
  }
  EXPECT_EQ(drifts, 10u);
}

TEST(TrendSeries, GiveTheSameAnswerTwice) {
  const std::vector<Series> list = all_series();
  for (std::size_t i = 0; i < list.size(); i += 25) {
    const auto first = trend_changes(list[i].points, {}),
               second = trend_changes(list[i].points, {});
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t c = 0; c < first.size(); ++c) {
      EXPECT_EQ(first[c].first_after, second[c].first_after);
      EXPECT_EQ(first[c].p, second[c].p);
    }
  }
}

}  // namespace
}  // namespace moegauge
