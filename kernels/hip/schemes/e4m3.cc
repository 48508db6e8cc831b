// E4M3 weights and activations with fp32 scales: by 128 x 128 block and group of 128, by channel
// and token, or by tensor. Either flavour on an architecture with FNUZ, OCP alone on the others:
// every OCP number halved is a FNUZ number, but 240 doubled is no OCP number that a scale of the
// same form could stand for.
#include "kernels/hip/layer_format.h"

namespace moegauge::hip {
namespace {

bool is_e4m3(Element e) { return e == Element::e4m3fn || e == Element::e4m3fnuz; }

}  // namespace

SchemeOnHip e4m3_on_hip;

std::optional<LayerFormat> e4m3_on_hip(const Problem& problem, const Architecture& architecture) {
  const SchemeTraits traits = problem.scheme->traits();
  const OperandTraits &w = traits.weight, &x = traits.activation;
  if (!is_e4m3(w.element) || x.element != w.element || w.scale != ScaleKind::fp32 ||
      x.scale != ScaleKind::fp32) {
    return std::nullopt;
  }
  if (w.element == Element::e4m3fnuz && !architecture.fnuz) return std::nullopt;
  LayerFormat format = {.normalised = architecture.fnuz && w.element == Element::e4m3fn,
                        .maximum = static_cast<float>(x.highest),
                        .rule = x.rule};
  if (format.normalised) {
    format.maximum /= 2;
    format.rule.scale_floor *= 2;
  }
  format.numerics.pair_out = Precision::activation_dtype;
  if (w.unit == ScaleUnit{128, 128} && x.unit == ScaleUnit{1, 128}) {
    format.name = "block_fp8";
    format.weight_scales = WeightScales::block;
    format.activations = ActivationUnit::group;
    return format;
  }
  format.name = "channel_fp8";
  format.weight_scales = WeightScales::channel;
  format.numerics.act_out = Precision::activation_dtype;
  if (w.unit == ScaleUnit{1, 0} && x.unit == ScaleUnit{1, 0} && !x.static_scale) {
    format.activations = ActivationUnit::row;
    return format;
  }
  if (w.unit == ScaleUnit{0, 0} && x.unit == ScaleUnit{0, 0}) {
    format.activations = ActivationUnit::tensor;
    return format;
  }
  return std::nullopt;
}

}  // namespace moegauge::hip
