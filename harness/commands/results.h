// What the commands that read result files share.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/commands/command.h"
#include "harness/result/result_io.h"

namespace moegauge {

// The result; where the file was cut, what is whole of it and a warning on `err`. Throws
// InputError.
LoadedResult load_for_judging(const std::string& file, const Environment& environment);

// Pretty-printed; bytes that are no UTF-8 become U+FFFD.
std::string strict_json(const nlohmann::ordered_json& json);

}  // namespace moegauge
