// `moegauge doctor`: what this machine offers, what is missing, what makes it noisy.
#pragma once

#include "harness/commands/command.h"

namespace moegauge {

Action add_doctor(CLI::App& subcommand);

}  // namespace moegauge
