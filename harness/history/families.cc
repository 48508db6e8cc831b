#include "harness/history/families.h"

#include <algorithm>
#include <tuple>

namespace moegauge {
namespace {

void sort_by_time(std::vector<HistoryPoint>& points) {
  std::ranges::sort(points, {}, [](const HistoryPoint& p) { return std::pair(p.time, p.run); });
}

// How far behind the anchor runs of the same kernel are looked for.
constexpr std::size_t anchor_reach = 30;

}  // namespace

Families families_of(HistoryStore& store, const CaseNames& names) {
  Families families;
  for (HistorySeries& one : store.series()) {
    families[{names.newest(one.case_id), one.device}].push_back(std::move(one));
  }
  return families;
}

std::vector<HistoryPoint> points_of(HistoryStore& store, const std::vector<HistorySeries>& family,
                                    std::size_t most) {
  std::vector<HistoryPoint> points;
  for (const HistorySeries& one : family) {
    const auto more = store.points(one, most);
    points.insert(points.end(), more.begin(), more.end());
  }
  if (family.size() > 1) sort_by_time(points);
  if (points.size() > most)
    points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(most));
  return points;
}

std::map<CaseOnDevice, HistoryAnchor> anchors_of(HistoryStore& store, const Families& families) {
  std::map<std::int64_t, const CaseOnDevice*> family_of;
  for (const auto& [key, family] : families) {
    for (const HistorySeries& one : family) family_of[one.id] = &key;
  }
  std::map<CaseOnDevice, HistoryAnchor> in_force;
  for (HistoryAnchor& anchor : store.anchors()) {
    const auto key = family_of.find(anchor.series);
    if (key == family_of.end()) continue;
    const auto [known, is_new] = in_force.try_emplace(*key->second, anchor);
    // Before a rename both names had a first run: the older one's. What somebody set counts in any
    // case, the last of it.
    const bool set = anchor.reason != first_anchor_reason;
    const bool was_set = known->second.reason != first_anchor_reason;
    const bool older =
        std::pair(anchor.time, anchor.run) < std::pair(known->second.time, known->second.run);
    if (!is_new && (set || (!was_set && older))) known->second = std::move(anchor);
  }
  return in_force;
}

std::vector<HistoryPoint> anchor_points(HistoryStore& store,
                                        const std::vector<HistorySeries>& family,
                                        const HistoryAnchor& anchor, std::size_t most) {
  std::vector<HistoryPoint> later;
  for (const HistorySeries& one : family) {
    const auto more = store.points_from(one, anchor.time, anchor_reach);
    later.insert(later.end(), more.begin(), more.end());
  }
  sort_by_time(later);
  const auto first = std::ranges::find(later, anchor.run, &HistoryPoint::run);
  std::vector<HistoryPoint> points;
  for (auto at = first; at != later.end() && points.size() < most; ++at) {
    // The anchor itself may have been held back until somebody accepted it.
    const bool serves = at == first ? at->counts() : at->serves();
    if (serves && at->kernel == first->kernel && at->config == first->config) {
      points.push_back(*at);
    }
  }
  return points;
}

}  // namespace moegauge
