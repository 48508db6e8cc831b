// `moegauge convert IN OUT --to fp8_block --flavor F`: weights of one scheme as weights of another.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_convert(CLI::App& subcommand);

}  // namespace moegauge
