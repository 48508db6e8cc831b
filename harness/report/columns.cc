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

// Each value once, and for each row which one it is; -1 for none.
struct Words {
  Json words = Json::array();
  std::vector<std::int64_t> at = {};
  std::size_t changes = 0;  // rows that differ from the one before
};

Words words_of(const Values& values) {
  Words column;
  std::unordered_map<std::string, std::int64_t> index;
  for (const Json* value : values) {
    std::int64_t at = -1;
    if (value != nullptr) {
      const auto [found, is_new] =
          index.emplace(value->dump(-1, ' ', false, Json::error_handler_t::replace),
                        static_cast<std::int64_t>(index.size()));
      if (is_new) column.words.push_back(*value);
      at = found->second;
    }
    column.changes += column.at.empty() || column.at.back() != at;
    column.at.push_back(at);
  }
  return column;
}

Json runs_of(const std::vector<std::int64_t>& at) {
  Json runs = Json::array();
  for (std::size_t i = 0, end = 0; i < at.size(); i = end) {
    while (end < at.size() && at[end] == at[i]) ++end;
    runs.push_back(at[i]);
    runs.push_back(end - i);
  }
  return runs;
}

// Whichever is shortest. Numbers that seldom repeat stand as they are.
Json column_of(const Values& values) {
  const Words column = words_of(values);
  if (column.words.size() == 1 && column.changes == 1) return {{"all", column.words[0]}};
  if (3 * column.changes < values.size())
    return {{"words", column.words}, {"runs", runs_of(column.at)}};
  const bool text = std::ranges::all_of(
      values, [](const Json* value) { return value == nullptr || value->is_string(); });
  if (text || 4 * column.words.size() < values.size())
    return {{"words", column.words}, {"at", column.at}};
  Json all = {{"values", Json::array()}};
  for (const Json* value : values) all["values"].push_back(value ? *value : Json());
  return all;
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
