// `moegauge tune`: a tuned-config file for one layer and scheme.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_tune(CLI::App& subcommand);

}  // namespace moegauge
