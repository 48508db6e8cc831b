// For the files of the schemes with E4M3 weights and activations: what they share.
#pragma once

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

// E4M3FN both sides with fp32 scales for units of these extents.
bool serves_e4m3(const SchemeTraits& traits, ScaleUnit weight, ScaleUnit activation);

// Hopper's FP8 instructions align the products of one instruction and cut them to about 14 bits
// before they are added, so that even sums taken over every 128 of K are not fp32 sums.
Numerics e4m3_numerics(Precision act_out);
// Where h waits in the activation dtype until the maximum for its scale is known.
Numerics waiting_numerics(const Layer& layer, bool promoted);

// All but `serves`, `numerics`, `scales` and `defaults`.
constexpr CudaScheme e4m3_scheme(const char* enumerator) {
  return {.enumerator = enumerator,
          .element_bytes = 1,
          .least_capability = 90,
          .serves = nullptr,
          .numerics = nullptr,
          .may_promote = true,
          .must_promote = false,
          .scales = WeightScales::none,
          .wide_activations = true,
          .defaults = {}};
}

}  // namespace moegauge::cuda
