// The hidden subcommand that `run` starts in a process of its own (harness/worker).
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_worker(CLI::App& subcommand);

}  // namespace moegauge
