// What an op's own suite fields are and say (CaseCoordinates::op_fields).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/suite/suite.h"
#include "reference/ops/op.h"

namespace moegauge {

// A single op's (reference/ops/op.h), or those of a whole layer: `shared_experts` is `separate`, or
// `fused` into the layer as experts that every token goes to, at weight 1.
std::vector<OpField> own_fields(const std::string& op);

// The shared experts that a case fuses into its layer; 0 where they stay apart, as in single ops.
// Throws InputError where the model has none, or those of a checkpoint would be needed.
std::int64_t fused_experts(const CaseCoordinates& c, const Model& model);
// The rank's layer with them: its last experts, which the rank holds, and as many more slots.
Layer with_fused_experts(Layer layer, std::int64_t fused);
// The layer without them.
Layer routed_part(Layer layer, std::int64_t fused);

}  // namespace moegauge
