// FP8 E4M3 weights with one fp32 scale per output channel, activations with one per token.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/fp8_schemes.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer&) {
  return serves_e4m3(traits, {1, 0}, {1, 0}) && !traits.activation.static_scale;
}

constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, true)},
    DefaultTile{8, split_tile(16, 2, true)},
    DefaultTile{18, split_tile(32, 2, true)},
    DefaultTile{48, split_tile(64, 2, true)},
    DefaultTile{80, whole_tile(80, true)},
    DefaultTile{160, paired_tile(80, true)},
    DefaultTile{320, paired_tile(96, true)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(2, false)},
};

}  // namespace

const CudaScheme& fp8_ptpc_scheme() {
  static constexpr CudaScheme scheme = [] {
    CudaScheme s = e4m3_scheme("fp8_ptpc");
    s.serves = &serves;
    s.numerics = &waiting_numerics;
    s.scales = WeightScales::channels;
    s.defaults = defaults;
    return s;
  }();
  return scheme;
}

}  // namespace moegauge::cuda
