#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/command.h"
#include "harness/commands/options.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// Errors of this tool are one line each, whatever a file's name or CLI11's own sentence holds.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : all_commands()) {
    if (!command.description.empty()) names.emplace_back(command.name);
  }
  return names;
}

// The subcommand given, and that of it where it has some, or the whole tool.
const CLI::App& addressed(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : addressed(*subcommands.front());
}

// "moegauge history add".
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

// A word that nothing takes is the cause of what else is amiss: a misspelt option is missing under
// its right name, and its value stands alone. Nothing where every word was taken.
std::optional<std::string> unknown_word(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  if (words.empty()) return std::nullopt;
  const auto dashed =
      std::ranges::find_if(words, [](const std::string& word) { return word.starts_with('-'); });
  const CLI::App& asked = addressed(app);
  if (dashed != words.end()) {
    const std::string name = dashed->substr(0, dashed->find('='));
    return "unknown option " + in_quotes(name) + "; " + suggestion(name, option_names(asked));
  }
  if (&asked == &app) {
    return "unknown command " + in_quotes(words.front()) + "; " +
           suggestion(words.front(), command_names());
  }
  std::vector<std::string> actions;
  for (const CLI::App* action : asked.get_subcommands([](const CLI::App*) { return true; })) {
    actions.push_back(action->get_name());
  }
  if (!actions.empty()) {
    return "unknown action " + in_quotes(words.front()) + "; " + suggestion(words.front(), actions);
  }
  return in_quotes(words.front()) + " is a word too many";
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error,
                       const Environment& environment) {
  if (error.get_exit_code() == 0) {  // --help, --version
    app.exit(error, environment.out, environment.err);
    return exit_ok;
  }
  const CLI::App& asked = addressed(app);
  environment.err << "moegauge: " << one_line(unknown_word(app).value_or(error.what())) << "; see "
                  << full_name(asked) << " --help\n";
  return exit_bad_input;
}

// An empty value is a variable of a script that was not set; taken for "not given" it would run
// something else than was meant. An empty filter has a meaning: it matches nothing.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.parse_order()) {
    if (option->check_name(filter_option)) continue;
    for (const std::string& value : option->results()) {
      if (value.empty())
        throw InputError(option->get_name(), "an empty value", "leave it out or give one");
    }
  }
  for (const CLI::App* subcommand : app.get_subcommands()) refuse_empty_values(*subcommand);
}

int guarded(const Action& action, const Environment& environment) {
  try {
    return action(environment);
  } catch (const InputError& error) {
    environment.err << "moegauge: " << one_line(error.what()) << '\n';
    return exit_bad_input;
  } catch (const std::exception& error) {
    environment.err << "moegauge: internal error: " << one_line(error.what()) << '\n';
    return exit_no_verdict;
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv, const Environment& environment) {
  CLI::App app("Benchmarking and accuracy-regression harness for quantised fused MoE kernels.",
               "moegauge");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(MOEGAUGE_VERSION));
  app.footer(
      "Exit codes: 0 fine, 1 a gate failed, 2 bad usage or input, 3 a case failed, 4 no verdict "
      "(also an internal error).");

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
    if (!sub->parsed()) continue;
    return guarded(
        [&chosen = *sub, &act = action](const Environment& where) {
          refuse_empty_values(chosen);
          return act(where);
        },
        environment);
  }
  return exit_bad_input;
}

}  // namespace moegauge
