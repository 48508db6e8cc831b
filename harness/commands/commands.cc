#include <array>

#include "harness/commands/command.h"
#include "harness/commands/run.h"
#include "harness/commands/worker.h"

namespace moegauge {

std::span<const Command> all_commands() {
  static constexpr std::array commands = {
      Command{"run", "Check and measure the cases of a suite, and write a result file", add_run},
      Command{"worker", "", add_worker},
  };
  return commands;
}

}  // namespace moegauge
