// What judging a case asks of the model files.
#pragma once

#include <filesystem>

#include "harness/judge/judge.h"
#include "harness/report/rows.h"

namespace moegauge {

// A layer's limits depend on its activation dtype, which the record says, or in files of before the
// model file knows. Remembers what it read.
ShippedLimits shipped_limits(std::filesystem::path root);

// The sizes of a case's layer; none where its model is not known here.
LayerFactsOf layer_facts(std::filesystem::path root);

}  // namespace moegauge
