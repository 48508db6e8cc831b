// A place in a JSON document, for reading it strictly: every accessor checks type and range, and
// every error is one line that names file, line, JSON pointer, what was found and what would be
// right.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/json/document.h"

namespace moegauge {

// RFC 6901: "~" is written "~0" and "/" "~1".
std::string escaped_pointer_token(std::string_view key);

class JsonCursor {
 public:
  // Both are kept by reference.
  explicit JsonCursor(const JsonDocument& document);
  // A value without a document: errors name `where` and the pointer, no line.
  JsonCursor(const nlohmann::ordered_json& value, std::string where);

  const nlohmann::ordered_json& json() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;

  // Members of an object. find() is nothing where the key is absent; at() then throws.
  std::optional<JsonCursor> find(std::string_view key) const;
  JsonCursor at(std::string_view key) const;
  std::vector<std::pair<std::string, JsonCursor>> members() const;
  // Refuses any key that is not in `known`, with the nearest that is.
  void only_keys(std::span<const std::string> known) const;
  void only_keys(std::initializer_list<std::string> known) const;

  // Elements of an array.
  std::vector<JsonCursor> items() const;

  std::string string() const;  // may be empty
  std::string text() const;    // at least one character that is no control character
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  std::uint64_t unsigned_integer() const;
  double number(double min, double max) const;  // finite
  bool boolean() const;
  // Index of the value in `names`; `what` is the noun of the message: unknown `what` "x".
  std::size_t one_of(std::span<const std::string> names, std::string_view what) const;

  // "file:line: /pointer", for errors about this value. Reads the document again to find the line.
  std::string place() const;
  // Throws InputError about this value.
  [[noreturn]] void fail(const std::string& wrong, const std::string& right) const;
  [[noreturn]] void fail_type(const std::string& right) const;

 private:
  JsonCursor child(const nlohmann::ordered_json& value, const std::string& token) const;

  const nlohmann::ordered_json* value_ = nullptr;
  const JsonDocument* document_ = nullptr;
  std::string where_, pointer_;
};

// "the string \"16\"", "an array of 3", "null": how a found value is named in errors.
std::string describe(const nlohmann::ordered_json& value);

}  // namespace moegauge
