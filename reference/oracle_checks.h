// For oracle.cc and its tests.
#pragma once

#include "reference/oracle.h"

namespace moegauge {

// Throws InputError if the layer is illegal, or the inputs or the source do not fit it.
void check_truth_inputs(const Layer& layer, const Scheme& scheme, const ExpertSource& experts,
                        const LayerInputs& inputs);

// Throws InputError if a bias of `size` elements does not fit.
void check_bias(const Layer& layer, Role role, std::int64_t expert, std::size_t size);

// compute_truth with a bound of its own on what is held of experts at a time, in bytes; one expert
// is held whatever it takes. The result does not depend on it.
Truth compute_truth_within(std::int64_t batch_bytes, const Layer& layer, const Scheme& scheme,
                           const Numerics& numerics, const ExpertSource& experts,
                           const LayerInputs& inputs, int threads);

}  // namespace moegauge
