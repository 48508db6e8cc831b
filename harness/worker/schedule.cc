#include "harness/worker/schedule.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>

namespace moegauge {
namespace {

auto weights_key(const CaseCoordinates& c) {
  return std::tuple(c.op, c.op_fields, c.model, c.layer, c.fields, c.scheme, c.tp, c.ep, c.inputs,
                    c.cache == "hot");
}

}  // namespace

std::vector<Group> schedule(std::span<const CaseCoordinates> cases) {
  std::vector<Group> groups;
  std::map<decltype(weights_key(cases[0])), std::size_t> group_of;
  std::map<std::string, std::size_t> point_of;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [group_at, new_group] = group_of.emplace(weights_key(cases[i]), groups.size());
    if (new_group) groups.emplace_back();
    Group& group = groups[group_at->second];
    const auto [point_at, new_point] = point_of.emplace(point_id(cases[i]), group.points.size());
    if (new_point) group.points.emplace_back();
    group.points[point_at->second].push_back(group.cases.size());
    group.cases.push_back(i);
  }
  return groups;
}

std::vector<Group> in_slices(const std::vector<Group>& groups) {
  std::vector<Group> slices;
  bool more = true;
  for (std::size_t begin = 0, length = 1; more; begin += length, length *= 2) {
    more = false;
    for (const Group& group : groups) {
      if (begin >= group.points.size()) continue;
      const std::size_t end = std::min(group.points.size(), begin + length);
      slices.push_back({group.cases,
                        {group.points.begin() + static_cast<std::ptrdiff_t>(begin),
                         group.points.begin() + static_cast<std::ptrdiff_t>(end)}});
      more = true;
    }
  }
  return slices;
}

std::vector<std::size_t> shard(std::span<const CaseCoordinates> cases, std::size_t index,
                               std::size_t count) {
  std::map<std::string, std::size_t> point_of;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::size_t point = point_of.emplace(point_id(cases[i]), point_of.size()).first->second;
    if (point % count == index - 1) kept.push_back(i);
  }
  return kept;
}

}  // namespace moegauge
