#include "harness/endtoend/end_to_end.h"

#include <cmath>

#include "harness/json/cursor.h"

namespace moegauge {

using Json = nlohmann::ordered_json;

std::string EndToEndRow::point() const {
  std::string text = op + "/" + model;
  for (const auto& [name, value] : labels) {
    if (name != "variant") text += "/" + name + "=" + value;
  }
  return text;
}

std::optional<double> EndToEndRow::number(const std::string& name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

Json to_json(const EndToEndRow& row) {
  Json json = {{"op", row.op},
               {"model", row.model},
               {"labels", row.labels},
               {"numbers", row.numbers},
               {"source", row.source}};
  if (!row.unknown.is_null()) json["unknown"] = row.unknown;
  return json;
}

EndToEndRow end_to_end_from_json(const Json& json, const std::string& where) {
  const JsonCursor top(json, where);
  EndToEndRow row;
  const std::vector<std::string> ops = {"serve", "eval"};
  row.op = ops[top.at("op").one_of(ops, "op")];
  row.model = top.at("model").string();
  for (const auto& [name, value] : top.at("labels").members()) row.labels[name] = value.string();
  for (const auto& [name, value] : top.at("numbers").members())
    row.numbers[name] = value.number(-HUGE_VAL, HUGE_VAL);
  row.source = top.at("source").string();
  if (const auto unknown = top.find("unknown")) row.unknown = unknown->json();
  return row;
}

}  // namespace moegauge
