// bf16 and fp16 weights and activations as they are, no scales.
#include "kernels/hip/layer_format.h"

namespace moegauge::hip {

SchemeOnHip half_on_hip;

std::optional<LayerFormat> half_on_hip(const Problem& problem, const Architecture&) {
  const SchemeTraits traits = problem.scheme->traits();
  if (traits.weight.element != Element::activation_dtype ||
      traits.activation.element != Element::activation_dtype) {
    return std::nullopt;
  }
  return LayerFormat{.name = problem.layer.dtype == Dtype::fp16 ? "fp16" : "bf16",
                     .element_bytes = 2,
                     .numerics = {.act_out = Precision::activation_dtype,
                                  .pair_out = Precision::activation_dtype}};
}

}  // namespace moegauge::hip
