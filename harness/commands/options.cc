#include "harness/commands/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace moegauge {
namespace {

// Empty where `text` is a seed. The parser behind it would take -1 and 010 for other numbers.
std::string wrong_seed(std::string& text) {
  const bool digits =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (digits && text.size() <= 19 && (text == "0" || text.front() != '0')) return "";
  return "'" + text + "' is no seed; 0 to 9999999999999999999 in decimal digits is";
}

}  // namespace

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

void add_seed(CLI::App& app, std::uint64_t& seed, const std::string& description) {
  app.add_option("--seed", seed, description)->check(CLI::Validator(&wrong_seed, "DIGITS"));
}

}  // namespace moegauge
