// `moegauge list KIND`: what is there to run, and on what.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_list(CLI::App& subcommand);

}  // namespace moegauge
