#include "harness/endtoend/points.h"

#include <algorithm>
#include <cmath>

#include "harness/judge/statistics.h"

namespace moegauge {
namespace {

std::string measured_on(const Result& result) {
  for (const auto& [key, value] : result.context)
    if (key == "measured_on" && value != "not stated") return value;
  return "";
}

}  // namespace

std::optional<double> EndToEndPoint::number(const std::string& name) const {
  std::vector<double> values;
  for (const EndToEndRow* row : rows)
    if (const auto value = row->number(name)) values.push_back(*value);
  return values.empty() ? std::nullopt : std::optional(median(values));
}

const EndToEndPoint* EndToEndSide::find(const std::string& id) const {
  const auto found = at.find(id);
  return found == at.end() ? nullptr : &points[found->second];
}

EndToEndSide side_of(std::span<const Result> results) {
  EndToEndSide side;
  for (const Result& result : results) {
    std::map<std::string, const EndToEndRow*> of_file;
    for (const EndToEndRow& row : result.end_to_end) {
      const std::string id = row.point();
      const auto [place, is_new] = side.at.emplace(id, side.points.size());
      if (is_new) side.points.push_back({.id = id});
      EndToEndPoint& point = side.points[place->second];
      const auto [first, first_of_file] = of_file.emplace(id, &row);
      if (first_of_file) {
        point.rows.push_back(&row);
        point.measured_on.push_back(measured_on(result));
        continue;
      }
      if (point.variants.empty()) point.variants.push_back(first->second->variant());
      point.variants.push_back(row.variant());
    }
  }
  return side;
}

std::optional<GoodDirection> direction_of(const std::string& number) {
  if (number.find("_per_s") != std::string::npos) return GoodDirection::higher_is_better;
  const bool time = number.find("_ms.") != std::string::npos && !number.ends_with(".std");
  return time ? std::optional(GoodDirection::lower_is_better) : std::nullopt;
}

std::string unit_of(const std::string& number) {
  if (number.find("_ms.") != std::string::npos) return "ms";
  if (number.starts_with("requests_per_s")) return "requests/s";
  return number.find("tokens_per_s") != std::string::npos ? "tok/s" : "";
}

}  // namespace moegauge
