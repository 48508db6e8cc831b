#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_ingest(CLI::App& subcommand);

}  // namespace moegauge
