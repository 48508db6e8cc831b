// int8 weights and activations with an fp32 scale per output channel and token (w8a8_int8).
//
// Products are integers of at most 127 * 127, exact in fp32; a row's sum is exact up to 2^24,
// beyond it is rounded as any fp32 sum. Gate, up and the activation function's output stay in fp32
// until they are quantised.
#include "kernels/cpu/schemes/byte_scales.h"
#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {
namespace {

std::optional<Recipe> recipe(const SchemeTraits& traits, const Layer&) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  const bool int8 = w.element == Element::int8 && x.element == Element::int8;
  if (!int8 || w.scale != ScaleKind::fp32 || w.zero_points) return std::nullopt;
  const auto granularity = activation_scale(w, x);
  if (!granularity) return std::nullopt;
  return Recipe{.weight = WeightCodec::int8,
                .scales = w.scale,
                .group = w.unit.cols,
                .scale_rows = w.unit.rows,
                .activation = ActivationCodec::int8,
                .activation_scale = *granularity,
                .scaling = scaling(x)};
}

}  // namespace

const CpuScheme& int8_scheme() {
  static constexpr CpuScheme scheme = {.recipe = &recipe, .weight_scale = &unit_scale};
  return scheme;
}

}  // namespace moegauge::cpu
