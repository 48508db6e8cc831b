// MXFP8: E4M3 weights and activations with one E8M0 scale per row (token) and 32 columns,
// multiplied as they are. Hopper's instructions know no scales: an instruction's 32 columns of K
// are one unit, so its sums are scaled and added in fp32.
#include <array>
#include <limits>

#include "kernels/cuda/schemes/fp8_schemes.h"

namespace moegauge::cuda {
namespace {

constexpr ScaleUnit unit = {1, 32};

bool serves(const SchemeTraits& traits, const Layer&) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  return w.element == Element::e4m3fn && x.element == Element::e4m3fn &&
         w.scale == ScaleKind::e8m0 && x.scale == ScaleKind::e8m0 && w.unit == unit &&
         x.unit == unit && x.rule.kind != ScaleRule::Kind::linear;
}

Numerics numerics(const Layer&, bool) { return e4m3_numerics(Precision::fp32); }

// Those of fp8_block as far as they go.
constexpr std::array defaults = {
    DefaultTile{2, split_tile(8, 2, true)},
    DefaultTile{8, split_tile(16, 2, true)},
    DefaultTile{20, split_tile(32, 2, true)},
    DefaultTile{40, split_tile(48, 2, true)},
    DefaultTile{std::numeric_limits<double>::infinity(), whole_tile(64, true)},
};

constexpr CudaScheme mx_scheme(const char* enumerator) {
  CudaScheme s = e4m3_scheme(enumerator);
  s.serves = &serves;
  s.numerics = &numerics;
  s.must_promote = true;
  s.scales = WeightScales::units;
  s.wide_activations = false;
  s.defaults = defaults;
  return s;
}

constexpr CudaScheme ceil_rule = mx_scheme("mxfp8");
constexpr CudaScheme floor_rule = mx_scheme("mxfp8_floor");

const CudaScheme* format(const SchemeTraits& traits) {
  return traits.activation.rule.kind == ScaleRule::Kind::power_of_two_floor ? &floor_rule
                                                                            : &ceil_rule;
}

}  // namespace

const CudaScheme& mxfp8_scheme() {
  static constexpr CudaScheme family = [] {
    CudaScheme s = ceil_rule;
    s.format = &format;
    return s;
  }();
  return family;
}

}  // namespace moegauge::cuda
