// MXFP4: E2M1 weights with an E8M0 scale per row and 32 columns, 16-bit activations. The kernels
// are those of four-bit integers: a code becomes an exact float instead of an integer, and a
// group's sum is multiplied by its scale in fp32.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer&) {
  const OperandTraits& w = traits.weight;
  return w.element == Element::e2m1 && w.scale == ScaleKind::e8m0 && w.unit == ScaleUnit{1, 32} &&
         traits.activation.element == Element::activation_dtype;
}

// Those of w4a16, whose chunks are smaller where groups are of 128: a stage less.
constexpr std::array defaults = {
    DefaultTile{5, integer_tile(8, 7)},
    DefaultTile{9, integer_tile(16, 7)},
    DefaultTile{18, integer_tile(24, 6)},
    DefaultTile{40, integer_tile(48, 5)},
    DefaultTile{128, integer_tile(64, 5)},
    DefaultTile{std::numeric_limits<double>::infinity(), integer_whole_tile(96, 3, 1)},
};

}  // namespace

const CudaScheme& e2m1_scheme() {
  static constexpr CudaScheme scheme = {
      .enumerator = "e2m1",
      .element_bytes = 2,
      .least_capability = 90,
      .serves = &serves,
      .numerics = &fp32_numerics,
      .may_promote = false,
      .must_promote = false,
      .scales = WeightScales::none,
      .wide_activations = false,
      .defaults = defaults,
      .integers = IntFormat{.bits = 4, .group = 32, .e2m1 = true}};
  return scheme;
}

}  // namespace moegauge::cuda
