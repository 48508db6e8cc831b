#include <vector>

#include "harness/commands/command.h"

namespace moegauge {

std::span<const Command> all_commands() {
  static const std::vector<Command> commands = {
  };
  return commands;
}

}  // namespace moegauge
