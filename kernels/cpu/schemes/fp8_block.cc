// FP8 E4M3 weights with one fp32 scale per block, activations with one per token and group.
//
// Products of two E4M3 values are exact in fp32 (and in bf16 dot products); each group has its own
// fp32 sum, scaled once. Gate, up and the activation function's output stay in fp32 until they are
// quantised.
#include <cstring>

#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {
namespace {

std::optional<Recipe> recipe(const SchemeTraits& traits, const Layer&) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  const bool formats = w.element == Element::e4m3fn && w.scale == ScaleKind::fp32 &&
                       x.element == Element::e4m3fn && x.scale == ScaleKind::fp32 &&
                       !x.static_scale;
  // A group must be whole lines of activations.
  const bool blocks = w.unit.rows > 0 && w.unit.cols > 0 && w.unit.cols % kPadElements == 0 &&
                      x.unit == ScaleUnit{1, w.unit.cols};
  if (!formats || !blocks) return std::nullopt;
  return Recipe{.weight = WeightCodec::e4m3fn,
                .activation = ActivationCodec::e4m3fn,
                .group = w.unit.cols,
                .scale_rows = w.unit.rows,
                .amax_floor = 1e-10f,
                .numerics = {}};
}

float block_scale(const ConstMatrix& w, const Recipe& recipe, std::int64_t row,
                  std::int64_t group) {
  const std::int64_t groups = (w.shape.cols + recipe.group - 1) / recipe.group;
  const std::int64_t index = row / recipe.scale_rows * groups + group;
  float scale;
  std::memcpy(&scale, w.scales.data() + static_cast<std::size_t>(index) * sizeof scale,
              sizeof scale);
  return scale;
}

}  // namespace

const CpuScheme& fp8_block_scheme() {
  static constexpr CpuScheme scheme = {&recipe, &block_scale};
  return scheme;
}

}  // namespace moegauge::cpu
