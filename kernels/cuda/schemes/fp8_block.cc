// FP8 E4M3 weights with one fp32 scale per 128x128 block, activations with one per token and group
// of 128. The tensor core's sums are taken over to fp32 every 128 of K, where the scales change
// anyway.
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
         w.unit == ScaleUnit{128, 128} && x.unit == ScaleUnit{1, 128};
}

// Hopper's FP8 instructions align the products of one instruction and cut them to about 14 bits
// before they are added, so that even sums taken over every 128 of K are not fp32 sums.
Numerics numerics(const Layer&, bool) {
  return {.gemm1_out = Precision::fp32,
          .act_out = Precision::fp32,
          .pair_out = Precision::activation_dtype,
          .accumulate = Accumulate::reduced};
}

constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, true)},
    DefaultTile{8, split_tile(16, 2, true)},
    DefaultTile{20, split_tile(32, 2, true)},
    DefaultTile{40, split_tile(48, 2, true)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(1, true)},
};

}  // namespace

const CudaScheme& fp8_block_scheme() {
  static constexpr CudaScheme scheme = {.enumerator = "fp8_block",
                                        .element_bytes = 1,
                                        .least_capability = 90,
                                        .serves = &serves,
                                        .numerics = &numerics,
                                        .may_promote = true,
                                        .must_promote = true,
                                        .scales = WeightScales::blocks,
                                        .wide_activations = false,
                                        .defaults = defaults};
  return scheme;
}

}  // namespace moegauge::cuda
