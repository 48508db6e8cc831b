// Int8 weights with one fp32 scale per output channel, int8 activations with one per token.
// Products are summed as 32-bit integers, exactly.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {
namespace {

constexpr ScaleUnit row = {1, 0};

bool serves(const SchemeTraits& traits, const Layer& layer) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  // A sum of K products of at most 127 * 127 must fit 31 bits.
  constexpr std::int64_t longest = 0x7fffffff / (127 * 127);
  return w.element == Element::int8 && x.element == Element::int8 && w.scale == ScaleKind::fp32 &&
         x.scale == ScaleKind::fp32 && w.unit == row && x.unit == row && !w.zero_points &&
         !x.static_scale && std::max(layer.hidden_size, layer.intermediate_size) <= longest;
}

// Those of fp8_ptpc, whose kernels these are with another instruction; at 64 rows an expert split
// tiles are faster (results/baselines/NVIDIA_H200/search-breadth.json).
constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, false)},
    DefaultTile{8, split_tile(16, 2, false)},
    DefaultTile{18, split_tile(32, 2, false)},
    DefaultTile{66, split_tile(64, 2, false)},
    DefaultTile{80, whole_tile(80, false)},
    DefaultTile{160, paired_tile(80, false)},
    DefaultTile{320, paired_tile(96, false)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(2, false)},
};

}  // namespace

const CudaScheme& w8a8_int8_scheme() {
  static constexpr CudaScheme scheme = {.enumerator = "w8a8_int8",
                                        .element_bytes = 1,
                                        .least_capability = 90,
                                        .serves = &serves,
                                        .numerics = &fp32_numerics,
                                        .may_promote = false,
                                        .must_promote = false,
                                        .scales = WeightScales::channels,
                                        .wide_activations = true,
                                        .defaults = defaults,
                                        .integer_products = true};
  return scheme;
}

}  // namespace moegauge::cuda
