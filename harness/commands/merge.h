// `moegauge merge`: the shards of one run as one result.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_merge(CLI::App& subcommand);

}  // namespace moegauge
