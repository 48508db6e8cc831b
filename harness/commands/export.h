// `moegauge export`: results in the formats of other tools.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_export(CLI::App& subcommand);

}  // namespace moegauge
