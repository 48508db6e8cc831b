#include "harness/history/trend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "harness/history/families.h"
#include "harness/judge/statistics.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

struct Subject {
  const char* name;
  double (*of)(const HistoryPoint&);
};

const std::array<Subject, 4> subjects = {{
    {"latency", [](const HistoryPoint& p) { return p.median; }},
    {"error.implementation.relative_l2",
     [](const HistoryPoint& p) { return p.errors.implementation; }},
    {"error.implementation.worst_token",
     [](const HistoryPoint& p) { return p.errors.worst_implementation; }},
    {"error.total.relative_l2", [](const HistoryPoint& p) { return p.errors.total; }},
}};

// A subject's values, and of which point each is.
struct Values {
  std::vector<double> values;
  std::vector<std::size_t> points;
};

Values values_of(const std::vector<HistoryPoint>& points, const Subject& subject) {
  Values all;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double value = subject.of(points[i]);
    // A case that is not ok has no latency and may have an error that explains why; neither is the
    // level of the kernel that is ok before and after.
    if (points[i].status != Status::ok || points[i].suspect || std::isnan(value)) continue;
    all.values.push_back(value);
    all.points.push_back(i);
  }
  return all;
}

double relative_size(double before, double after) {
  if (before == after) return 0;
  return before > 0 ? std::abs(after / before - 1) : HUGE_VAL;
}

// Joins stretches across the smallest change until every one left is at least `least`.
std::vector<ChangePoint> without_small(const Values& all, std::vector<ChangePoint> changes,
                                       double least) {
  const std::span<const double> values = all.values;
  const auto level = [&](std::size_t begin, std::size_t end) {
    return median(values.subspan(begin, end - begin));
  };
  for (;;) {
    std::size_t smallest = changes.size();
    double size = least;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const std::size_t begin = i == 0 ? 0 : changes[i - 1].at;
      const std::size_t end = i + 1 == changes.size() ? values.size() : changes[i + 1].at;
      const double its = relative_size(level(begin, changes[i].at), level(changes[i].at, end));
      if (its >= size) continue;
      size = its;
      smallest = i;
    }
    if (smallest == changes.size()) return changes;
    changes.erase(changes.begin() + static_cast<std::ptrdiff_t>(smallest));
  }
}

// Whether a hash that most of the runs before do not have stands within `reach` of the change: the
// place that the search gives is itself uncertain by a few runs.
bool changed_about(const std::vector<HistoryPoint>& points, const Values& all, std::size_t at,
                   std::size_t reach, const std::string HistoryPoint::*hash) {
  const std::size_t begin = at > reach ? at - reach : 0;
  const std::size_t end = std::min(all.points.size(), at + reach);
  for (std::size_t i = begin + 1; i < end; ++i) {
    if (points[all.points[i]].*hash != points[all.points[i - 1]].*hash) return true;
  }
  return false;
}

void add_changes(const std::vector<HistoryPoint>& points, const Subject& subject,
                 const TrendSettings& settings, std::vector<TrendChange>& list) {
  const Values all = values_of(points, subject);
  const auto changes = without_small(all, change_points(all.values, settings.search),
                                     std::max(settings.least_size, 1e-12));
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : changes[i - 1].at, at = changes[i].at;
    const std::size_t end = i + 1 == changes.size() ? all.values.size() : changes[i + 1].at;
    const std::span<const double> values = all.values;
    const auto changed = [&](const std::string HistoryPoint::*hash) {
      return changed_about(points, all, at, settings.search.least, hash);
    };
    list.push_back({.subject = subject.name,
                    .last_before = all.points[at - 1],
                    .first_after = all.points[at],
                    .runs_before = at - begin,
                    .runs_after = end - at,
                    .before = median(values.subspan(begin, at - begin)),
                    .after = median(values.subspan(at, end - at)),
                    .p = changes[i].p,
                    .kernel_changed = changed(&HistoryPoint::kernel),
                    .config_changed = changed(&HistoryPoint::config)});
  }
}

std::vector<std::string> older_names(const std::vector<HistorySeries>& family,
                                     const std::string& id) {
  std::vector<std::string> names;
  for (const HistorySeries& one : family) {
    if (one.case_id != id) names.push_back(one.case_id);
  }
  return names;
}

void look_for_its_end(const std::vector<HistoryRun>& runs, Trend& trend) {
  std::set<std::int64_t> has;
  for (const HistoryPoint& point : trend.points) has.insert(point.run);
  std::set<std::string> suites;
  for (const HistoryRun& run : runs) {
    if (has.contains(run.id)) suites.insert(run.suite);
  }
  for (auto run = runs.rbegin(); run != runs.rend() && !has.contains(run->id); ++run) {
    trend.runs_since += suites.contains(run->suite);
  }
  trend.vanished = trend.runs_since > 0;
}

}  // namespace

std::optional<double> TrendChange::size() const {
  if (before == 0) return std::nullopt;
  return after / before - 1;
}

std::string TrendChange::cause() const {
  if (kernel_changed && config_changed) return "kernel and config";
  if (kernel_changed) return "kernel";
  return config_changed ? "config" : "environment";
}

std::vector<TrendChange> trend_changes(const std::vector<HistoryPoint>& points,
                                       const TrendSettings& settings) {
  std::vector<TrendChange> list;
  for (const Subject& subject : subjects) add_changes(points, subject, settings, list);
  return list;
}

std::vector<Trend> trends_of(HistoryStore& store, const std::vector<HistoryRun>& runs,
                             const WantedCase& wanted, const TrendSettings& settings) {
  const Families families = families_of(store, CaseNames(store.renames()));
  const auto anchors = anchors_of(store, families);
  std::vector<Trend> list;
  for (const auto& [key, family] : families) {
    if (!wanted(key.first, key.second)) continue;
    Trend trend{.id = key.first,
                .device = key.second,
                .older_names = older_names(family, key.first),
                .points = points_of(store, family, settings.last)};
    trend.changes = trend_changes(trend.points, settings);
    if (const auto anchor = anchors.find(key); anchor != anchors.end()) {
      const auto of_it = anchor_points(store, family, anchor->second, 1);
      if (!of_it.empty()) trend.anchor = of_it.front();
    }
    look_for_its_end(runs, trend);
    list.push_back(std::move(trend));
  }
  return list;
}

std::vector<Trend> trends(HistoryStore& store, const std::vector<HistoryRun>& runs,
                          const std::string& cases, const std::string& device,
                          const TrendSettings& settings) {
  const std::string name = CaseNames(store.renames()).newest(cases);
  const WantedCase meant = [&](const std::string& id, const std::string& on) {
    return (id == name || matches_glob(cases, id)) && (on == device || matches_glob(device, on));
  };
  return trends_of(store, runs, meant, settings);
}

}  // namespace moegauge
