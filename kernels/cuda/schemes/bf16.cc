// Unquantised bf16 weights and activations, fp32 accumulation.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer& layer) {
  return layer.dtype == Dtype::bf16 && traits.weight.element == Element::activation_dtype &&
         traits.activation.element == Element::activation_dtype;
}

Numerics numerics(const Layer&, bool) {
  return {.gemm1_out = Precision::fp32,
          .act_out = Precision::activation_dtype,
          .pair_out = Precision::activation_dtype,
          .accumulate = Accumulate::fp32};
}

constexpr std::array defaults = {
    DefaultTile{2,
                {.token_tile = 8,
                 .stages = 4,
                 .split_k = true,
                 .swap_ab = true,
                 .cluster = 1,
                 .dealt = 1,
                 .promote = false}},
    DefaultTile{8,
                {.token_tile = 16,
                 .stages = 4,
                 .split_k = true,
                 .swap_ab = true,
                 .cluster = 1,
                 .dealt = 1,
                 .promote = false}},
    DefaultTile{18,
                {.token_tile = 32,
                 .stages = 4,
                 .split_k = true,
                 .swap_ab = true,
                 .cluster = 1,
                 .dealt = 1000,
                 .promote = false}},
    DefaultTile{40,
                {.token_tile = 64,
                 .stages = 4,
                 .split_k = true,
                 .swap_ab = true,
                 .cluster = 1,
                 .dealt = 1000,
                 .promote = false}},
    DefaultTile{80,
                {.token_tile = 96,
                 .stages = 4,
                 .split_k = false,
                 .swap_ab = true,
                 .cluster = 1,
                 .dealt = 1,
                 .promote = false}},
    DefaultTile{std::numeric_limits<double>::infinity(),
                {.token_tile = 128,
                 .stages = 4,
                 .split_k = false,
                 .swap_ab = false,
                 .cluster = 2,
                 .dealt = 1,
                 .promote = false}},
};

}  // namespace

const CudaScheme& bf16_scheme() {
  static constexpr CudaScheme scheme = {.enumerator = "bf16",
                                        .element_bytes = 2,
                                        .least_capability = 90,
                                        .serves = &serves,
                                        .numerics = &numerics,
                                        .may_promote = false,
                                        .must_promote = false,
                                        .block_scales = false,
                                        .wide_activations = false,
                                        .defaults = defaults};
  return scheme;
}

}  // namespace moegauge::cuda
