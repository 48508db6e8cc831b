#include <algorithm>
#include <unordered_map>

#include "harness/report/rows.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;
using Values = std::vector<const Json*>;  // null pointers where a row has none

std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  std::unordered_map<std::string, bool> seen;
  for (const Row& row : rows) {
    for (const auto& [name, value] : row.items()) {
      if (seen.emplace(name, true).second) names.push_back(name);
    }
  }
  return names;
}

Json words_of(const Values& values) {
  std::unordered_map<std::string, std::size_t> index;
  Json column = {{"words", Json::array()}, {"at", Json::array()}};
  for (const Json* value : values) {
    if (value == nullptr) {
      column["at"].push_back(-1);
      continue;
    }
    const auto [found, is_new] = index.emplace(value->get<std::string>(), index.size());
    if (is_new) column["words"].push_back(*value);
    column["at"].push_back(found->second);
  }
  return column;
}

Json column_of(const Values& values) {
  const Json* const first = values.front();
  const bool constant = first != nullptr && std::ranges::all_of(values, [&](const Json* value) {
                          return value != nullptr && *value == *first;
                        });
  if (constant) return {{"all", *first}};
  const bool text = std::ranges::all_of(
      values, [](const Json* value) { return value == nullptr || value->is_string(); });
  if (text) return words_of(values);
  Json column = {{"values", Json::array()}};
  for (const Json* value : values) column["values"].push_back(value ? *value : Json());
  return column;
}

}  // namespace

nlohmann::ordered_json columns_of(const std::vector<Row>& rows) {
  Json table = {{"rows", rows.size()}, {"columns", Json::object()}};
  for (const std::string& name : names_of(rows)) {
    Values values;
    for (const Row& row : rows) {
      const auto found = row.find(name);
      values.push_back(found == row.end() ? nullptr : &*found);
    }
    table["columns"][name] = column_of(values);
  }
  return table;
}

}  // namespace moegauge
