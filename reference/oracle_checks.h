// For oracle.cc.
#pragma once

#include "reference/oracle.h"

namespace moegauge {

// Throws InputError if the layer is illegal, or the inputs or the source do not fit it.
void check_truth_inputs(const Layer& layer, const Scheme& scheme, const ExpertSource& experts,
                        const LayerInputs& inputs);

}  // namespace moegauge
