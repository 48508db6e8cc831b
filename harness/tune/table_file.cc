#include "harness/tune/table_file.h"

#include <nlohmann/json.hpp>

namespace moegauge {

std::map<std::string, std::string> table_metadata(const Problem& problem, const Backend& backend,
                                                  const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> metadata = {
      {"scheme", problem.scheme->config_scheme()},
      {"hidden_size", std::to_string(problem.layer.hidden_size)},
      {"top_k", std::to_string(problem.layer.top_k)},
      {"group_size", std::to_string(problem.scheme->traits().weight.unit.cols)},
      {"device", normalized_device_name(backend.device().name)}};
  for (const auto& [name, version] : backend.toolchain()) metadata[name] = version;
  for (const auto& [name, value] : more) metadata[name] = value;
  return metadata;
}

std::string table_text(const ConfigTable& table) {
  nlohmann::ordered_json json;
  for (const auto& [tokens, config] : table.entries) {
    nlohmann::ordered_json entry;
    for (const auto& [key, value] : config.values) entry[key] = value;
    json[std::to_string(tokens)] = std::move(entry);
  }
  for (const auto& [key, value] : table.metadata) json[key] = value;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace moegauge
