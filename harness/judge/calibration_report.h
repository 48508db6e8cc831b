// A calibration as text for people and machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/judge/calibration.h"

namespace moegauge {

// Per device a table of its cases, the noisiest first, and what follows from them.
std::string text_report(const Calibration& calibration);
// The same, as the file has it (moegauge.calibration/1).
nlohmann::ordered_json json_report(const Calibration& calibration);

}  // namespace moegauge
