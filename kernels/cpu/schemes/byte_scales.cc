#include "kernels/cpu/schemes/byte_scales.h"

#include <cstring>

#include "reference/formats/e8m0.h"

namespace moegauge::cpu {
namespace {

ScalingRule rule_of(const OperandTraits& activation) {
  if (activation.static_scale) return ScalingRule::given;
  switch (activation.rule.kind) {
    case ScaleRule::Kind::linear:
      return ScalingRule::amax;
    case ScaleRule::Kind::power_of_two_ceil:
      return ScalingRule::power_of_two_ceil;
    case ScaleRule::Kind::power_of_two_floor:
      return ScalingRule::power_of_two_floor;
  }
  return ScalingRule::none;
}

}  // namespace

std::optional<ActivationScale> activation_scale(const OperandTraits& weight,
                                                const OperandTraits& activation) {
  const ScaleUnit& unit = activation.unit;
  if (activation.scale != weight.scale || unit.cols != weight.unit.cols) return std::nullopt;
  if (activation.static_scale) return ActivationScale::fixed;
  if (unit == ScaleUnit{0, 0}) return ActivationScale::tensor;
  if (unit == ScaleUnit{1, 0}) return ActivationScale::row;
  // A group must be whole lines of activations.
  if (unit.rows == 1 && unit.cols % kPadElements == 0) return ActivationScale::group;
  return std::nullopt;
}

Scaling scaling(const OperandTraits& activation) {
  return {.rule = rule_of(activation),
          .maximum = static_cast<float>(activation.highest),
          .amax_floor = activation.rule.amax_floor,
          .scale_floor = activation.rule.scale_floor};
}

float unit_scale(const ConstMatrix& w, const Recipe& recipe, std::int64_t row, std::int64_t group) {
  const std::int64_t groups =
      recipe.group > 0 ? (w.shape.cols + recipe.group - 1) / recipe.group : 1;
  const std::int64_t unit = recipe.scale_rows > 0 ? row / recipe.scale_rows : 0;
  const std::byte* const scales = w.scales.data();
  const auto index = static_cast<std::size_t>(unit * groups + group);
  if (recipe.scales == ScaleKind::e8m0) {
    return e8m0_to_float(static_cast<std::uint8_t>(scales[index]));
  }
  float scale;
  std::memcpy(&scale, scales + index * sizeof scale, sizeof scale);
  return scale;
}

}  // namespace moegauge::cpu
