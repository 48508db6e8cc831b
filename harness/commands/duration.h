// Durations as people type them.
#pragma once

#include <string>

namespace moegauge {

// "90", "90s", "20m", "1h30m", "0.5h" in seconds, more than 0. Throws InputError naming `option`.
double parse_duration(const std::string& text, const std::string& option);
// "42s", "3m05s", "2h10m".
std::string duration_text(double seconds);

}  // namespace moegauge
