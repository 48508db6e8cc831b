// The shape that every subcommand has: a file NAME.{h,cc} in this folder that exposes
//
//   Action add_NAME(CLI::App& subcommand);
//
// and one line in the table of commands.cc. add_NAME declares the options on the subcommand that it
// is given (name and one-line description are set already) and returns what to do once they are
// parsed; options live in a std::shared_ptr that the action keeps.
//
// An action returns an exit code of ExitCode. Bad input is thrown as InputError: the command line
// prints it as "moegauge: where: wrong; right" and exits with 2.
#pragma once

#include <functional>
#include <iosfwd>
#include <span>
#include <string_view>

#include "kernels/backend.h"

namespace CLI {
class App;
}

namespace moegauge {

// When several apply, the one named first here wins: bad_input, gate_failed, case_failed,
// no_verdict.
enum ExitCode : int {
  exit_ok = 0,
  exit_gate_failed = 1,
  exit_bad_input = 2,    // bad usage or bad input
  exit_case_failed = 3,  // `run` had a case inaccurate, crashed, timeout, out_of_memory or error
  // Nothing matched, nothing ok, no baseline, no device, inconclusive, a case lost to the machine
  // (`infrastructure`), or an error of this tool's own.
  exit_no_verdict = 4,
};

// What a command may touch besides files.
struct Environment {
  std::ostream& out;  // tables and whatever was asked for
  std::ostream& err;  // progress, warnings, errors
  std::span<const Backend* const> backends;
};

using Action = std::function<int(const Environment&)>;

struct Command {
  std::string_view name;
  std::string_view description;  // empty: hidden from --help
  Action (*add)(CLI::App& subcommand);
};

// Every subcommand, in the order in which --help shows them.
std::span<const Command> all_commands();

// Parses and runs one command line.
int run_command_line(int argc, const char* const* argv, const Environment& environment);

}  // namespace moegauge
