#include "harness/report/nightly.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "harness/history/families.h"
#include "harness/report/row_parts.h"

namespace moegauge {
namespace {

// When its latency last changed its level, in the order of runs; 0: never.
std::int64_t last_change(const Trend& trend) {
  std::int64_t time = 0;
  for (const TrendChange& change : trend.changes) {
    if (change.of_latency()) time = std::max(time, trend.points[change.first_after].time);
  }
  return time;
}

double distance_from_anchor(const Trend& trend) {
  if (!trend.anchor || !(trend.anchor->median > 0)) return 0;
  const auto last = std::find_if(trend.points.rbegin(), trend.points.rend(),
                                 [](const HistoryPoint& point) { return point.counts(); });
  if (last == trend.points.rend()) return 0;
  return std::abs(std::log(last->median / trend.anchor->median));
}

void put_most_telling_first(std::vector<Trend>& trends) {
  struct Key {
    std::int64_t change;
    double distance;
    std::size_t at;
  };
  std::vector<Key> order;
  for (std::size_t i = 0; i < trends.size(); ++i)
    order.push_back({last_change(trends[i]), distance_from_anchor(trends[i]), i});
  std::ranges::sort(order, [](const Key& a, const Key& b) {
    return std::tuple(-a.change, -a.distance, a.at) < std::tuple(-b.change, -b.distance, b.at);
  });
  std::vector<Trend> sorted;
  for (const Key& key : order) sorted.push_back(std::move(trends[key.at]));
  trends = std::move(sorted);
}

std::set<CaseOnDevice> cases_of(const std::vector<const Result*>& results, const CaseNames& names) {
  std::set<CaseOnDevice> cases;
  for (const Result* result : results) {
    for (const CaseRecord& record : result->cases)
      cases.emplace(names.newest(record.id()), history_device_key(record.device, *result));
  }
  return cases;
}

}  // namespace

Nightly nightly_of(HistoryStore& store, const std::string& name,
                   const std::vector<const Result*>& results, const NightlyRoom& room) {
  Nightly nightly{.name = name, .runs = store.runs()};
  for (const Result* result : results)
    nightly.holds_result.push_back(store.run_of(content_of(*result)).has_value());
  const std::set<CaseOnDevice> cases = cases_of(results, CaseNames(store.renames()));
  if (cases.empty()) return nightly;
  const std::size_t runs_each =
      std::clamp(room.points / cases.size(), room.least_runs, room.most_runs);
  nightly.trends = trends_of(store, nightly.runs,
                             [&](const std::string& id, const std::string& device) {
                               return cases.contains({id, device});
                             },
                             {.last = runs_each});
  nightly.unknown = cases.size() - nightly.trends.size();
  put_most_telling_first(nightly.trends);
  const std::size_t most = std::max<std::size_t>(1, room.points / runs_each);
  if (nightly.trends.size() > most) {
    nightly.left_out = nightly.trends.size() - most;
    nightly.trends.resize(most);
  }
  for (const Trend& trend : nightly.trends) {
    for (const HistoryPoint& point : trend.points) {
      if (!nightly.configs.contains(point.variant))
        nightly.configs[point.variant] =
            values_text(read_variant(store.variant(point.variant)).config);
    }
  }
  return nightly;
}

}  // namespace moegauge
