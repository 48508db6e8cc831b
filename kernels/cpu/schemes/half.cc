// bf16 and fp16: weights and activations are what the layer's dtype holds, no scales.
//
// The activation function's output is rounded to that dtype before the second GEMM, as its dot
// instructions take it; everything else stays in fp32.
#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {
namespace {

std::optional<Recipe> recipe(const SchemeTraits& traits, const Layer& layer) {
  const auto plain = [](const OperandTraits& t) {
    return t.element == Element::activation_dtype && t.scale == ScaleKind::none;
  };
  if (!plain(traits.weight) || !plain(traits.activation)) return std::nullopt;
  if (traits.only && *traits.only != layer.dtype) return std::nullopt;
  const bool bf16 = layer.dtype == Dtype::bf16;
  return Recipe{.weight = bf16 ? WeightCodec::bf16 : WeightCodec::fp16,
                .activation = bf16 ? ActivationCodec::bf16 : ActivationCodec::fp16,
                .numerics = {.act_out = Precision::activation_dtype}};
}

}  // namespace

const CpuScheme& half_scheme() {
  static constexpr CpuScheme scheme = {.recipe = &recipe};
  return scheme;
}

}  // namespace moegauge::cpu
