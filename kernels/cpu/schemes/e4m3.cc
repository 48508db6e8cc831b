// FP8 E4M3 weights and activations, OCP or FNUZ, with scales in fp32 or powers of two (E8M0): per
// block and group (fp8_block, mxfp8), per output channel and token (fp8_ptpc), per expert and call
// or calibrated (fp8_tensor).
//
// Products of two E4M3 values are exact in fp32 (and in bf16 dot products); each group has its own
// fp32 sum, scaled once. Gate, up and the activation function's output stay in fp32 until they are
// quantised.
#include "kernels/cpu/schemes/byte_scales.h"
#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {
namespace {

std::optional<Recipe> recipe(const SchemeTraits& traits, const Layer&) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  const bool ocp = w.element == Element::e4m3fn, fnuz = w.element == Element::e4m3fnuz;
  const bool scaled = w.scale == ScaleKind::fp32 || w.scale == ScaleKind::e8m0;
  if (!(ocp || fnuz) || !scaled || x.element != w.element) return std::nullopt;
  const auto granularity = activation_scale(w, x);
  if (!granularity) return std::nullopt;
  return Recipe{.weight = ocp ? WeightCodec::e4m3fn : WeightCodec::e4m3fnuz,
                .scales = w.scale,
                .scale_type = w.scale == ScaleKind::e8m0 ? ScaleType::bf16 : ScaleType::fp32,
                .group = w.unit.cols,
                .scale_rows = w.unit.rows,
                .activation = ocp ? ActivationCodec::e4m3fn : ActivationCodec::e4m3fnuz,
                .activation_scale = *granularity,
                .scaling = scaling(x)};
}

}  // namespace

const CpuScheme& e4m3_scheme() {
  static constexpr CpuScheme scheme = {.recipe = &recipe, .weight_scale = &unit_scale};
  return scheme;
}

}  // namespace moegauge::cpu
