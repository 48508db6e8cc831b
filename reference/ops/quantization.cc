#include "reference/ops/quantization.h"

#include <utility>

#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int8.h"
#include "reference/schemes/byte_scheme.h"

namespace moegauge {

TensorType code_type(Element element) {
  switch (element) {
    case Element::e4m3fn:
      return TensorType::e4m3fn;
    case Element::e4m3fnuz:
      return TensorType::e4m3fnuz;
    case Element::int8:
      return TensorType::int8;
    default:
      return TensorType::packed;
  }
}

TensorSpec activation_scale_spec(std::string name, const OperandTraits& traits,
                                 const UnitGrid& grid) {
  const TensorType type = traits.scale == ScaleKind::e8m0 ? TensorType::e8m0 : TensorType::fp32;
  if (traits.unit == ScaleUnit{0, 0}) return {std::move(name), type, {1}};
  return {std::move(name), type, {grid.down(), grid.across()}};
}

std::uint8_t encode_activation(const OperandTraits& traits, float quotient) {
  switch (traits.element) {
    case Element::e4m3fnuz:
      return float_to_e4m3fnuz(quotient, static_cast<float>(traits.highest));
    case Element::int8:
      return static_cast<std::uint8_t>(float_to_int8(quotient));
    default:
      return float_to_e4m3fn(quotient);
  }
}

Quantized quantize_activations(const OperandTraits& traits, const UnitGrid& grid,
                               std::span<const float> x, float given) {
  Quantized out = {Tensor({"codes", code_type(traits.element), {grid.rows, grid.cols}}),
                   Tensor(activation_scale_spec("scales", traits, grid))};
  const auto codes = out.codes.as<std::uint8_t>();
  for_each_unit(grid, [&](std::size_t unit, const Rectangle& r) {
    const float scale = traits.static_scale ? given
                                            : scale_of(traits.rule, finite_amax(x, grid, r),
                                                       static_cast<float>(traits.highest));
    if (traits.scale == ScaleKind::e8m0) {
      out.scales.as<std::uint8_t>()[unit] = e8m0_ceil(scale, 1.0f);  // exact
    } else {
      out.scales.as<float>()[unit] = scale;
    }
    for_each_element(grid, r,
                     [&](std::size_t i) { codes[i] = encode_activation(traits, x[i] / scale); });
  });
  return out;
}

double scale_at(const Tensor& scales, std::size_t unit) {
  return scales.spec.type == TensorType::e8m0 ? e8m0_to_float(scales.as<std::uint8_t>()[unit])
                                              : scales.as<float>()[unit];
}

std::vector<double> dequantized(const UnitGrid& grid, const Tensor& codes, const Tensor& scales) {
  std::vector<double> values = decoded(codes);
  for_each_unit(grid, [&](std::size_t unit, const Rectangle& r) {
    const double scale = scale_at(scales, unit);
    for_each_element(grid, r, [&](std::size_t i) { values[i] *= scale; });
  });
  return values;
}

}  // namespace moegauge
