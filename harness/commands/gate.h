// `moegauge gate RESULT --baseline FILE`: whether a result may stand against a baseline.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_gate(CLI::App& subcommand);

}  // namespace moegauge
