// `moegauge report`: results as one page to look at.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_report(CLI::App& subcommand);

}  // namespace moegauge
