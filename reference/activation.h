// The activation functions between the two GEMMs, in fp64.
#pragma once

#include "reference/layer.h"

namespace moegauge {

// act(gate, up); formulas at ActivationKind in layer.h. A NaN in either gives a NaN.
double activate(const Activation& activation, double gate, double up);

}  // namespace moegauge
