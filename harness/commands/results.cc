#include "harness/commands/results.h"

#include <nlohmann/json.hpp>
#include <ostream>

namespace moegauge {

LoadedResult load_for_judging(const std::string& file, const Environment& environment) {
  LoadedResult loaded = load_result(file);
  if (loaded.truncated) environment.err << "moegauge: warning: " << *loaded.truncated << '\n';
  return loaded;
}

std::string strict_json(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace moegauge
