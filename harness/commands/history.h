// `moegauge history`: results over time.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_history(CLI::App& subcommand);

}  // namespace moegauge
