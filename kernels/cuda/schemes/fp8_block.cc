// FP8 E4M3 weights with one fp32 scale per 128x128 block, activations with one per token and group
// of 128. The tensor core's sums are taken over to fp32 every 128 of K, where the scales change
// anyway.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/fp8_schemes.h"

namespace moegauge::cuda {
namespace {

bool serves(const SchemeTraits& traits, const Layer&) {
  return serves_e4m3(traits, {128, 128}, {1, 128});
}

Numerics numerics(const Layer&, bool) { return e4m3_numerics(Precision::fp32); }

constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, true)},
    DefaultTile{8, split_tile(16, 2, true)},
    DefaultTile{20, split_tile(32, 2, true)},
    DefaultTile{40, split_tile(48, 2, true)},
    DefaultTile{std::numeric_limits<double>::infinity(), token_rows_tile(2, true)},
};

}  // namespace

const CudaScheme& fp8_block_scheme() {
  static constexpr CudaScheme scheme = [] {
    CudaScheme s = e4m3_scheme("fp8_block");
    s.serves = &serves;
    s.numerics = &numerics;
    s.must_promote = true;
    s.scales = WeightScales::blocks;
    s.wide_activations = false;
    s.defaults = defaults;
    return s;
  }();
  return scheme;
}

}  // namespace moegauge::cuda
