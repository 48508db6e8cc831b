// Strict JSON (RFC 8259) over nlohmann/json: what that parser lets pass is refused here. Duplicate
// keys, integers beyond 64 bits, numbers that overflow a double, NaN and Infinity, comments, bytes
// after the value, nesting beyond a limit and ill-formed UTF-8 are errors that name line and
// column.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace moegauge {

inline constexpr int max_json_depth = 64;

// A parsed text that remembers where it came from.
class JsonDocument {
 public:
  // `where` is the name used in errors, usually the file's.
  static JsonDocument parse(std::string text, std::string where);
  static JsonDocument read(const std::filesystem::path& file);

  const nlohmann::ordered_json& root() const { return *root_; }
  const std::string& where() const { return where_; }
  // Line on which the value (or the key that leads to it) at a JSON pointer stands. Found by
  // reading the text again: only errors ask.
  std::size_t line_of(const std::string& pointer) const;

 private:
  JsonDocument() = default;
  std::string where_, text_;
  std::shared_ptr<const nlohmann::ordered_json> root_;
};

// What can be had of a text that ends too early.
struct CutJson {
  nlohmann::ordered_json* operator->() const { return root.get(); }
  std::shared_ptr<nlohmann::ordered_json>
      root;                            // values that were whole; the unfinished one is missing
  std::optional<std::string> stopped;  // "line 12, column 7", set when the text was cut
};

// Parses a text that may have been cut at any byte: every array element and object member that was
// whole is kept. Other errors throw as above.
CutJson parse_cut_json(std::string_view text, const std::string& where);

}  // namespace moegauge
