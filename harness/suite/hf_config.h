// Hugging Face config.json files as models: each architecture's own key names.
#pragma once

#include <string>
#include <vector>

#include "harness/json/document.h"
#include "harness/suite/suite.h"

namespace moegauge {

// Throws InputError: an unknown model_type is named with the list of known ones, a missing key by
// its name.
Model read_hf_config(const JsonDocument& document);

// The model_type values that read_hf_config knows.
std::vector<std::string> hf_model_types();

}  // namespace moegauge
