// A case over its runs: where its latency and its errors changed their level, by how much, and
// whether the code changed there too.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/store.h"
#include "harness/statistics/change_points.h"

namespace moegauge {

struct TrendSettings {
  std::size_t last = 500;    // runs looked at, the newest
  double least_size = 0.01;  // changes of a smaller part are not shown
  ChangePointSearch search = {};
};

struct TrendChange {
  std::string subject = {};  // latency, error.implementation.relative_l2, ...
  // Runs that count: the last before and the first after, in `Trend::points`.
  std::size_t last_before = 0, first_after = 0;
  std::size_t runs_before = 0, runs_after = 0;  // at that level
  double before = 0, after = 0;                 // medians
  double p = 1;
  bool kernel_changed = false, config_changed = false;  // about there

  bool of_latency() const { return subject == "latency"; }
  // after / before - 1; none where it was 0.
  std::optional<double> size() const;
  // Neither changed, so that something else did: the machine, its driver, what ran beside.
  bool environment() const { return !kernel_changed && !config_changed; }
  std::string cause() const;  // kernel, config, kernel and config, environment
};

// A case on one device.
struct Trend {
  std::string id = {}, device = {};
  std::vector<std::string> older_names = {};
  std::vector<HistoryPoint> points = {};
  std::vector<TrendChange> changes = {};  // latency's first, each subject's in order of time
  std::optional<HistoryPoint> anchor = {};
  // The newest run of the suites that measured it does not hold it.
  bool vanished = false;
  std::size_t runs_since = 0;  // runs of those suites after its last
};

// Changes among `points`, which are in order of time.
std::vector<TrendChange> trend_changes(const std::vector<HistoryPoint>& points,
                                       const TrendSettings& settings);

// Of every case whose newest name matches the glob `cases`, on every device whose key matches the
// glob `device`.
std::vector<Trend> trends(HistoryStore& store, const std::vector<HistoryRun>& runs,
                          const std::string& cases, const std::string& device,
                          const TrendSettings& settings);

// Of every case, by its newest name, and device key that are wanted.
using WantedCase = std::function<bool(const std::string& id, const std::string& device)>;
std::vector<Trend> trends_of(HistoryStore& store, const std::vector<HistoryRun>& runs,
                             const WantedCase& wanted, const TrendSettings& settings);

// `shown`: how many of the newest points the table has.
std::string trend_text(const Trend& trend, const std::vector<HistoryRun>& runs, std::size_t shown);
nlohmann::ordered_json trend_json(const Trend& trend, const std::vector<HistoryRun>& runs);

}  // namespace moegauge
