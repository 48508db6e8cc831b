#include "harness/json/cursor.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(double value) { return Json(value).dump(); }

}  // namespace

std::string escaped_pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return token;
}

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::string:
      return "the string " + in_quotes(value.get_ref<const std::string&>());
    case Json::value_t::array:
      return "an array of " + std::to_string(value.size());
    case Json::value_t::object:
      return "an object";
    default:
      return "the number " + value.dump();
  }
}

JsonCursor::JsonCursor(const JsonDocument& document)
    : value_(&document.root()), document_(&document), where_(document.where()) {}

JsonCursor::JsonCursor(const Json& value, std::string where)
    : value_(&value), where_(std::move(where)) {}

bool JsonCursor::is_null() const { return value_->is_null(); }
bool JsonCursor::is_object() const { return value_->is_object(); }
bool JsonCursor::is_array() const { return value_->is_array(); }
bool JsonCursor::is_string() const { return value_->is_string(); }
bool JsonCursor::is_number() const { return value_->is_number(); }

JsonCursor JsonCursor::child(const Json& value, const std::string& token) const {
  JsonCursor cursor = *this;
  cursor.value_ = &value;
  cursor.pointer_ += "/" + escaped_pointer_token(token);
  return cursor;
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
  if (!is_object()) fail_type("an object");
  const auto found = value_->find(std::string(key));
  if (found == value_->end()) return std::nullopt;
  return child(*found, std::string(key));
}

JsonCursor JsonCursor::at(std::string_view key) const {
  auto found = find(key);
  if (!found) fail("the key " + in_quotes(key) + " is missing", "add it");
  return *found;
}

std::vector<std::pair<std::string, JsonCursor>> JsonCursor::members() const {
  if (!is_object()) fail_type("an object");
  std::vector<std::pair<std::string, JsonCursor>> all;
  all.reserve(value_->size());
  for (const auto& [key, value] : value_->items()) all.emplace_back(key, child(value, key));
  return all;
}

void JsonCursor::only_keys(std::span<const std::string> known) const {
  if (!is_object()) fail_type("an object");
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      child(value, key).fail("unknown key " + in_quotes(key), suggestion(key, known));
    }
  }
}

void JsonCursor::only_keys(std::initializer_list<std::string> known) const {
  only_keys(std::span<const std::string>(known.begin(), known.size()));
}

std::vector<JsonCursor> JsonCursor::items() const {
  if (!is_array()) fail_type("an array");
  std::vector<JsonCursor> all;
  all.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    all.push_back(child((*value_)[i], std::to_string(i)));
  return all;
}

std::string JsonCursor::string() const {
  if (!is_string()) fail_type("a string");
  return value_->get<std::string>();
}

std::string JsonCursor::text() const {
  std::string value = string();
  if (value.empty()) fail("an empty string", "write at least one character");
  for (const char c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      fail("a control character in " + in_quotes(value), "write printable characters");
  }
  return value;
}

std::int64_t JsonCursor::integer(std::int64_t min, std::int64_t max) const {
  const std::string right = "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  if (!value_->is_number_integer()) fail_type(right);
  const bool too_big =
      value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  const std::int64_t value = too_big ? INT64_MAX : value_->get<std::int64_t>();
  if (too_big || value < min || value > max)
    fail(value_->dump() + " is out of range", "write " + right);
  return value;
}

std::uint64_t JsonCursor::unsigned_integer() const {
  if (!value_->is_number_unsigned()) fail_type("an integer from 0 to 18446744073709551615");
  return value_->get<std::uint64_t>();
}

double JsonCursor::number(double min, double max) const {
  std::string right = "a number from " + shown(min) + " to " + shown(max);
  if (std::isinf(min) || std::isinf(max)) {
    right = std::isinf(min) ? "a number" : "a number of at least " + shown(min);
  }
  if (!is_number()) fail_type(right);
  const double value = value_->get<double>();
  if (!(value >= min && value <= max)) fail(value_->dump() + " is out of range", "write " + right);
  return value;
}

bool JsonCursor::boolean() const {
  if (!value_->is_boolean()) fail_type("true or false");
  return value_->get<bool>();
}

std::size_t JsonCursor::one_of(std::span<const std::string> names, std::string_view what) const {
  std::string value = string();
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) {
    fail("unknown " + std::string(what) + " " + in_quotes(value), suggestion(value, names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::string JsonCursor::place() const {
  std::string where = where_;
  if (document_ != nullptr) where += ":" + std::to_string(document_->line_of(pointer_));
  if (pointer_.empty()) return where;
  const std::string shown = in_quotes(pointer_);  // a key may hold anything
  return where + ": " + shown.substr(1, shown.size() - 2);
}

void JsonCursor::fail(const std::string& wrong, const std::string& right) const {
  throw InputError(place(), wrong, right);
}

void JsonCursor::fail_type(const std::string& right) const {
  fail("found " + describe(*value_), right + " is expected");
}

}  // namespace moegauge
