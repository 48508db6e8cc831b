// Unquantised weights and activations in bf16 or fp16, fp32 accumulation.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer&) {
  return traits.weight.element == Element::activation_dtype &&
         traits.activation.element == Element::activation_dtype;
}

constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 1, false)},
    DefaultTile{8, split_tile(16, 1, false)},
    DefaultTile{18, split_tile(32, 1000, false)},
    DefaultTile{40, split_tile(64, 1000, false)},
    DefaultTile{66, whole_tile(80, false)},
    DefaultTile{80, whole_tile(96, false)},
    DefaultTile{640, whole_tile(144, false)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(2, false)},
};

}  // namespace

const CudaScheme& half_scheme() {
  static constexpr CudaScheme scheme = {.enumerator = "half",
                                        .element_bytes = 2,
                                        .least_capability = 90,
                                        .serves = &serves,
                                        .numerics = &fp32_numerics,
                                        .may_promote = false,
                                        .must_promote = false,
                                        .scales = WeightScales::none,
                                        .wide_activations = false,
                                        .defaults = defaults};
  return scheme;
}

}  // namespace moegauge::cuda
