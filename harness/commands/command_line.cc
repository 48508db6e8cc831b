#include <CLI/CLI.hpp>
#include <exception>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/command.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// CLI11's own sentence may span lines; errors of this tool are one line each.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error,
                       const Environment& environment) {
  if (error.get_exit_code() == 0) {  // --help, --version
    app.exit(error, environment.out, environment.err);
    return exit_ok;
  }
  environment.err << "moegauge: " << one_line(error.what()) << "; see moegauge --help\n";
  return exit_bad_input;
}

int guarded(const Action& action, const Environment& environment) {
  try {
    return action(environment);
  } catch (const InputError& error) {
    environment.err << "moegauge: " << one_line(error.what()) << '\n';
    return exit_bad_input;
  } catch (const std::exception& error) {
    environment.err << "moegauge: internal error: " << one_line(error.what()) << '\n';
    return exit_case_failed;
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const Environment& environment) {
  CLI::App app("Benchmarking and accuracy-regression harness for quantised fused MoE kernels.",
               "moegauge");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(MOEGAUGE_VERSION));
  app.footer(
      "Exit codes: 0 fine, 1 a gate failed, 2 bad usage or input, 3 a case failed, 4 no verdict.");

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : all_commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.description));
    if (command.description.empty()) sub->group("");
    actions.emplace_back(sub, command.add(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error, environment);
  }
  for (const auto& [sub, action] : actions) {
    if (sub->parsed()) return guarded(action, environment);
  }
  return exit_bad_input;
}

}  // namespace moegauge
