// Case ids and the `config` coordinate.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "harness/suite/suite.h"
#include "reference/base/fnv1a.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr std::string_view file_prefix = "file:";

// One part of an id: what would end the part or the line is written as %XX.
std::string id_part(std::string_view text) {
  static constexpr std::string_view hex = "0123456789ABCDEF";
  std::string part;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || c == '%' || byte <= 0x20 || byte == 0x7F) {
      part += {'%', hex[byte >> 4], hex[byte & 15]};
    } else {
      part += c;
    }
  }
  return part;
}

std::string shown_config(const std::string& config) {
  if (!config.starts_with('{')) return id_part(config);
  return "#" + config_hash8(parse_config_request(config, "config").config);
}

std::string shown_model(const CaseCoordinates& c) {
  return id_part(c.model) + (c.layer < 0 ? "" : "@" + std::to_string(c.layer)) +
         (c.fields.empty() ? "" : "#" + text_hash8(c.fields));
}

std::string head(const CaseCoordinates& c) {
  return op_label(c) + "/" + shown_model(c) + "/" + id_part(c.scheme) + "/tp" +
         std::to_string(c.tp) + ".ep" + std::to_string(c.ep) + "/";
}

std::string tail(const CaseCoordinates& c) {
  return id_part(c.routing) + "/" + id_part(c.inputs) + "/" + id_part(c.cache) + "/" +
         id_part(c.launch) + "/M=" + std::to_string(c.tokens);
}

}  // namespace

std::string op_label(const CaseCoordinates& c) {
  std::string label = id_part(c.op);
  char before = ':';
  for (const auto& [name, value] : op_fields_from(c.op_fields, "op_fields")) {
    const auto* number = std::get_if<std::int64_t>(&value);
    label += before + id_part(name) + "=" +
             (number != nullptr ? std::to_string(*number) : id_part(std::get<std::string>(value)));
    before = ',';
  }
  return label;
}

std::string op_fields_text(const OpFields& fields) {
  if (fields.empty()) return "";
  nlohmann::json json;
  for (const auto& [name, value] : fields) {
    std::visit([&json, &key = name](const auto& v) { json[key] = v; }, value);
  }
  return json.dump();
}

OpFields op_fields_from(const std::string& text, const std::string& where) {
  OpFields fields;
  if (text.empty()) return fields;
  const auto document = JsonDocument::parse(text, where);
  for (const auto& [name, value] : JsonCursor(document).members()) {
    if (value.is_string()) {
      fields[name] = value.string();
    } else {
      fields[name] = value.integer(INT64_MIN, INT64_MAX);
    }
  }
  return fields;
}

std::string case_id(const CaseCoordinates& c) {
  return head(c) + id_part(c.backend) + "/" + shown_config(c.config) + "/" + tail(c);
}

std::string point_id(const CaseCoordinates& c) { return head(c) + tail(c); }

std::optional<std::filesystem::path> replayed_file(const CaseCoordinates& c) {
  if (!c.inputs.starts_with(file_prefix)) return std::nullopt;
  return c.inputs.substr(file_prefix.size());
}

ConfigRequest parse_config_request(const std::string& text, const std::string& where) {
  if (text == "default") return {.kind = ConfigRequest::Kind::default_config};
  if (text == "tuned") return {.kind = ConfigRequest::Kind::tuned};
  if (text.starts_with(file_prefix)) {
    if (text.size() == file_prefix.size())
      throw InputError(where, "file: without a path", "write file:PATH");
    return {.kind = ConfigRequest::Kind::file, .file = text.substr(file_prefix.size())};
  }
  if (text.starts_with('{')) {
    const auto document = JsonDocument::parse(text, where);
    ConfigRequest request{.kind = ConfigRequest::Kind::inline_values};
    for (const auto& [key, value] : JsonCursor(document).members()) {
      request.config.values[key] = value.integer(0, INT32_MAX);
    }
    return request;
  }
  static const std::array<std::string, 2> words = {"default", "tuned"};
  const std::string best = suggestion(text, words);
  throw InputError(where, "unknown config " + in_quotes(text),
                   best.starts_with("did") ? best : "write default, tuned, file:PATH or an object");
}

std::string inline_config(const Config& config) { return nlohmann::json(config.values).dump(); }

std::string config_hash8(const Config& config) { return text_hash8(inline_config(config)); }

std::string text_hash8(std::string_view text) { return fnv1a_hex(text).substr(0, 8); }

}  // namespace moegauge
