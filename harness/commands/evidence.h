// `moegauge evidence`: results as a page for a pull request.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_evidence(CLI::App& subcommand);

}  // namespace moegauge
