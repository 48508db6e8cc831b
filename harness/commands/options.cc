#include "harness/commands/options.h"

#include <CLI/CLI.hpp>

namespace moegauge {

void add_filter(CLI::App& app, std::string& glob, const std::string& description) {
  app.add_option(filter_option, glob, description)->type_name("GLOB");
}

void add_json_flag(CLI::App& app, bool& json, const std::string& instead_of) {
  app.add_flag("--json", json, "Print JSON instead of " + instead_of);
}

void add_policy(CLI::App& app, std::string& policy, const std::string& description) {
  app.add_option("--policy", policy, description + " [default]");
}

void add_markdown(CLI::App& app, std::string& file, const std::string& what) {
  app.add_option("--markdown", file, "Also write " + what + " to this file");
}

}  // namespace moegauge
