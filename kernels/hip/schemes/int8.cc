// int8 weights with a scale per channel, int8 activations with one per token.
#include "kernels/hip/layer_format.h"

namespace moegauge::hip {

SchemeOnHip int8_on_hip;

std::optional<LayerFormat> int8_on_hip(const Problem& problem, const Architecture&) {
  const SchemeTraits traits = problem.scheme->traits();
  const OperandTraits &w = traits.weight, &x = traits.activation;
  if (w.element != Element::int8 || x.element != Element::int8 || w.zero_points || w.group_index ||
      w.scale != ScaleKind::fp32 || x.scale != ScaleKind::fp32 || w.unit != ScaleUnit{1, 0} ||
      x.unit != ScaleUnit{1, 0} || x.static_scale) {
    return std::nullopt;
  }
  return LayerFormat{.name = "int8_channels",
                     .weight_scales = WeightScales::channel,
                     .activations = ActivationUnit::row,
                     .int8 = true,
                     .maximum = static_cast<float>(x.highest),
                     .rule = x.rule,
                     .numerics = {.act_out = Precision::activation_dtype,
                                  .pair_out = Precision::activation_dtype}};
}

}  // namespace moegauge::hip
