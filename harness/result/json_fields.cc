#include "harness/result/json_fields.h"

#include <cmath>
#include <stdexcept>
#include <utility>

namespace moegauge {

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Json finite(double value, std::string_view name) {
  if (!std::isfinite(value)) {
    throw std::invalid_argument(std::string(name) + " of a record is not finite");
  }
  return value;
}

Json beyond(const Json& all, const Json& known) {
  Json extra;
  if (!all.is_object() || !known.is_object()) return extra;
  for (const auto& [key, value] : all.items()) {
    const auto found = known.find(key);
    if (found == known.end()) {
      extra[key] = value;
    } else if (Json inner = beyond(value, *found); !inner.is_null()) {
      extra[key] = std::move(inner);
    }
  }
  return extra;
}

void merge_missing(Json& json, const Json& extra) {
  if (!json.is_object() || !extra.is_object()) return;
  for (const auto& [key, value] : extra.items()) {
    const auto found = json.find(key);
    if (found == json.end()) {
      json[key] = value;
    } else {
      merge_missing(*found, value);
    }
  }
}

}  // namespace moegauge
