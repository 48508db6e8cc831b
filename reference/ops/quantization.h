// Activations as a scheme's kernels see them: codes and scales, apart.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/schemes/units.h"
#include "reference/tensor.h"

namespace moegauge {

TensorType code_type(Element element);
// What scales of activations cut into `grid` are held in: [rows, groups], or [1] for one.
TensorSpec activation_scale_spec(std::string name, const OperandTraits& traits,
                                 const UnitGrid& grid);

// One element's code, nearest even, saturating.
std::uint8_t encode_activation(const OperandTraits& traits, float quotient);

struct Quantized {
  Tensor codes, scales;
};
// `given` is read where the scheme's scale is calibrated.
Quantized quantize_activations(const OperandTraits& traits, const UnitGrid& grid,
                               std::span<const float> x, float given);

double scale_at(const Tensor& scales, std::size_t unit);
// codes * scales, row-major.
std::vector<double> dequantized(const UnitGrid& grid, const Tensor& codes, const Tensor& scales);

}  // namespace moegauge
