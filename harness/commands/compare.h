// `moegauge compare A B`: two results side by side, case by case.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_compare(CLI::App& subcommand);

}  // namespace moegauge
