// What another program has to say.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moegauge {

// Standard output of a program found in PATH; nothing where it is not there or did not end with 0.
// What it complains of goes nowhere.
std::optional<std::string> output_of(const std::vector<std::string>& words);

}  // namespace moegauge
