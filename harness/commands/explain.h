// `moegauge explain MODEL --scheme S`: which backend would serve a layer, and why no other.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_explain(CLI::App& subcommand);

}  // namespace moegauge
