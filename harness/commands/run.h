// `moegauge run SUITE`: check and measure a suite's cases and write a result file.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_run(CLI::App& subcommand);

}  // namespace moegauge
