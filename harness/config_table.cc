#include "harness/config_table.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr std::int64_t max_key = std::int64_t{1} << 31;

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool canonical = is_digits(text) && (text.size() == 1 || text.front() != '0');
  if (!canonical || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Config read_entry(const JsonCursor& cursor) {
  Config config;
  for (const auto& [name, value] : cursor.members()) {
    if (name.empty()) value.fail("an empty name", "name the parameter");
    config.values[name] = value.integer(0, max_key);
  }
  if (config.values.empty()) cursor.fail("an empty config", "give at least BLOCK_SIZE_M");
  return config;
}

// The metadata that a lookup compares with the layer and the device. Misspelt, they would be
// compared with nothing; other keys are anybody's.
const std::vector<std::string> compared_keys = {"scheme", "hidden_size", "top_k",   "group_size",
                                                "device", "driver",      "compiler"};

void refuse_misspelt(const std::string& key, const JsonCursor& cursor) {
  if (std::ranges::find(compared_keys, key) != compared_keys.end()) return;
  const std::string guess = suggestion(key, compared_keys);
  if (!guess.starts_with("did you mean")) return;
  cursor.fail("the metadata key " + in_quotes(key) + " is compared with nothing", guess);
}

std::string read_metadata(const std::string& key, const JsonCursor& cursor) {
  // "-16", " 16" or "16.0" would be a batch size that no lookup ever finds.
  const bool nearly_number =
      !key.empty() && key.find_first_not_of("0123456789+-. eE") == std::string::npos;
  if (cursor.is_object() || cursor.is_array() || key.empty() || nearly_number) {
    cursor.fail(in_quotes(key) + " is neither a batch size nor metadata",
                "a batch size is a plain decimal key with an object, metadata a word with a value");
  }
  refuse_misspelt(key, cursor);
  return cursor.is_string() ? cursor.string() : cursor.json().dump();
}

// Engines take the first of two equally near keys in the file's order. Only neighbours tie, and
// only where their sum is even.
std::vector<std::string> order_warnings(const std::map<std::int64_t, std::size_t>& places) {
  std::vector<std::string> warnings;
  for (auto at = places.begin(); at != places.end(); ++at) {
    const auto next = std::next(at);
    if (next == places.end() || (at->first + next->first) % 2 != 0) continue;
    if (next->second > at->second) continue;
    warnings.push_back("at M = " + std::to_string((at->first + next->first) / 2) +
                       " the file's order makes an engine use " + std::to_string(next->first) +
                       "; here ties go to the smaller key, " + std::to_string(at->first));
  }
  return warnings;
}

// What a tuned file's name promises; a file called otherwise promises nothing.
void check_name(const ConfigTable& table, const Problem& problem) {
  const auto named = parse_config_file_name(table.file.filename().string());
  if (!named) return;
  ConfigFileName wanted = {.experts = problem.layer.local_experts(),
                           .intermediate_size = problem.layer.intermediate_size,
                           .device_name = named->device_name,
                           .dtype = std::string(problem.scheme->config_dtype()),
                           .block_shape = problem.scheme->config_block_shape()};
  if (*named == wanted) return;
  throw InputError(table.file.string(), "it is tuned for another layer",
                   "this one's files are called " + to_string(wanted));
}

}  // namespace

ConfigTable load_config_table(const std::filesystem::path& file) {
  return read_config_table(JsonDocument::read(file), file);
}

ConfigTable read_config_table(const JsonDocument& document, const std::filesystem::path& file) {
  const JsonCursor top(document);
  ConfigTable table{.file = file};
  std::map<std::int64_t, std::size_t> places;
  for (const auto& [key, value] : top.members()) {
    if (!is_digits(key)) {
      table.metadata[key] = read_metadata(key, value);
      continue;
    }
    const auto tokens = parse_count(key);
    if (!tokens || *tokens < 1 || *tokens > max_key) {
      value.fail("the batch size " + in_quotes(key) + " is out of range or has leading zeros",
                 "write a plain number from 1 to " + std::to_string(max_key));
    }
    table.entries[*tokens] = read_entry(value);
    places[*tokens] = places.size();
  }
  if (table.entries.empty()) top.fail("no batch sizes", "a table has at least one");
  table.warnings = order_warnings(places);
  return table;
}

ConfigChoice choose(const ConfigTable& table, std::int64_t tokens) {
  const auto distance = [&](std::int64_t key) {
    return key < tokens ? tokens - key : key - tokens;
  };
  auto best = table.entries.begin();
  for (auto at = table.entries.begin(); at != table.entries.end(); ++at) {
    if (distance(at->first) < distance(best->first)) best = at;
  }
  const std::int64_t min = table.entries.begin()->first, max = table.entries.rbegin()->first;
  return {.key = best->first,
          .config = best->second,
          .extrapolated = tokens * 2 < min || tokens > max * 2};
}

std::string to_string(const ConfigFileName& name) {
  std::string text = "E=" + std::to_string(name.experts) +
                     ",N=" + std::to_string(name.intermediate_size) +
                     ",device_name=" + name.device_name;
  if (!name.dtype.empty()) text += ",dtype=" + name.dtype;
  if (name.block_shape) {
    text += ",block_shape=[" + std::to_string(name.block_shape->first) + "," +
            std::to_string(name.block_shape->second) + "]";
  }
  return text + ".json";
}

std::optional<ConfigFileName> parse_config_file_name(std::string_view file) {
  // Takes what follows the last `mark` off the end of `file`.
  const auto take_tail = [&](std::string_view mark) -> std::optional<std::string_view> {
    const auto at = file.rfind(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const auto tail = file.substr(at + mark.size());
    file = file.substr(0, at);
    return tail;
  };
  if (!file.ends_with(".json")) return std::nullopt;
  file.remove_suffix(5);
  ConfigFileName name;
  if (const auto shape = take_tail(",block_shape=")) {
    const auto comma = shape->find(',');
    if (!shape->starts_with('[') || !shape->ends_with(']') || comma == std::string_view::npos) {
      return std::nullopt;
    }
    const auto n = parse_count(shape->substr(1, comma - 1));
    auto k_text = shape->substr(comma + 1, shape->size() - comma - 2);
    if (k_text.starts_with(' ')) k_text.remove_prefix(1);  // older files: [128, 128]
    const auto k = parse_count(k_text);
    constexpr std::int64_t max_side = std::numeric_limits<int>::max();
    if (!n || !k || *n > max_side || *k > max_side) return std::nullopt;
    name.block_shape = {static_cast<int>(*n), static_cast<int>(*k)};
  }
  if (const auto dtype = take_tail(",dtype=")) name.dtype = *dtype;
  const auto device = take_tail(",device_name=");
  const auto size = take_tail(",N=");
  if (!device || device->empty() || !size || !file.starts_with("E=")) return std::nullopt;
  const auto experts = parse_count(file.substr(2)), intermediate = parse_count(*size);
  if (!experts || !intermediate) return std::nullopt;
  name.experts = *experts;
  name.intermediate_size = *intermediate;
  name.device_name = *device;
  return name;
}

std::string normalized_device_name(std::string_view name) {
  std::string text;
  bool in_run = false;
  for (const char c : name) {
    const bool separator = c == '/' || std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!separator) text += c;
    if (separator && !in_run) text += '_';
    in_run = separator;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('_', begin), text.size());
    if (text.substr(begin, end - begin) == "H200") return "NVIDIA_H200";
    begin = end + 1;
  }
  return text;
}

std::string config_file_name(const Layer& layer, const Scheme& scheme,
                             const std::string& device_name) {
  return to_string({.experts = layer.local_experts(),
                    .intermediate_size = layer.intermediate_size,
                    .device_name = normalized_device_name(device_name),
                    .dtype = std::string(scheme.config_dtype()),
                    .block_shape = scheme.config_block_shape()});
}

std::filesystem::path tuned_config_file(const Backend& backend, const Problem& problem) {
  if (backend.config_folder().empty()) return {};
  return std::filesystem::path(backend.config_folder()) /
         config_file_name(problem.layer, *problem.scheme, backend.device().tuned_name());
}

std::vector<std::string> check_table(const ConfigTable& table, const Problem& problem,
                                     const Device& device,
                                     const std::map<std::string, std::string>& environment) {
  const std::map<std::string, std::string> must_match = {
      {"scheme", problem.scheme->config_scheme()},
      {"hidden_size", std::to_string(problem.layer.hidden_size)},
      {"top_k", std::to_string(problem.layer.top_k)},
      {"group_size", std::to_string(problem.scheme->traits().weight.unit.cols)}};
  std::map<std::string, std::string> may_change = environment;
  may_change["device"] = normalized_device_name(device.name);

  check_name(table, problem);
  std::map<std::string, std::string> metadata = table.metadata;
  if (const auto named = parse_config_file_name(table.file.filename().string())) {
    // A class of devices is no device: such a file names the one that it was measured on inside.
    const bool of_class = named->device_name == normalized_device_name(device.tuned_name());
    if (!of_class) metadata.emplace("device", named->device_name);
  }
  std::vector<std::string> stale;
  for (const auto& [key, value] : metadata) {
    if (const auto found = must_match.find(key);
        found != must_match.end() && value != found->second) {
      throw InputError(table.file.string() + ": /" + key,
                       "tuned for " + key + " " + in_quotes(value),
                       "this layer has " + in_quotes(found->second));
    }
    const auto found = may_change.find(key);
    if (found == may_change.end()) continue;
    const bool same =
        key == "device" ? normalized_device_name(value) == found->second : value == found->second;
    if (!same) {
      stale.push_back(key + ": file has " + in_quotes(value) + ", this run " +
                      in_quotes(found->second));
    }
  }
  return stale;
}

}  // namespace moegauge
