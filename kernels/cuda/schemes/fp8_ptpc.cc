// FP8 E4M3 weights with one fp32 scale per output channel, activations with one per token.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer&) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  return w.element == Element::e4m3fn && x.element == Element::e4m3fn &&
         w.scale == ScaleKind::fp32 && x.scale == ScaleKind::fp32 && !x.static_scale &&
         w.unit == ScaleUnit{1, 0} && x.unit == ScaleUnit{1, 0};
}

// The activations wait in bf16 until the whole row's maximum is known.
Numerics numerics(const Layer&, bool) {
  return {.gemm1_out = Precision::fp32,
          .act_out = Precision::activation_dtype,
          .pair_out = Precision::activation_dtype,
          .accumulate = Accumulate::reduced};
}

constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, true)},
    DefaultTile{8, split_tile(16, 2, true)},
    DefaultTile{18, split_tile(32, 2, true)},
    DefaultTile{48, split_tile(64, 2, true)},
    DefaultTile{160, whole_tile(80, true)},
    DefaultTile{320, whole_tile(96, false)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(2, false)},
};

}  // namespace

const CudaScheme& fp8_ptpc_scheme() {
  static constexpr CudaScheme scheme = {.enumerator = "fp8_ptpc",
                                        .element_bytes = 1,
                                        .least_capability = 90,
                                        .serves = &serves,
                                        .numerics = &numerics,
                                        .may_promote = true,
                                        .must_promote = false,
                                        .scales = WeightScales::channels,
                                        .wide_activations = true,
                                        .defaults = defaults};
  return scheme;
}

}  // namespace moegauge::cuda
