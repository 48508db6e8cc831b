// A file's tensors as an op infers sizes from them (reference/ops/given.h).
#pragma once

#include "harness/tensors/safetensors.h"
#include "reference/ops/given.h"

namespace moegauge {

// Views `file`, which outlives the result.
GivenTensors given_tensors(const SafetensorsFile& file);

}  // namespace moegauge
