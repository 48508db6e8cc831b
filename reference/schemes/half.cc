#include "reference/schemes/half.h"

#include "reference/dtype.h"
#include "reference/schemes/units.h"

namespace moegauge {

ErrorLimits half_limits(Dtype dtype) {
  if (dtype == Dtype::fp16) return {.relative_l2 = 0.0005, .worst_token = 0.0012};
  return {.relative_l2 = 0.0014, .worst_token = 0.0074, .few_rows_l2 = 0.0036};
}

void emulate_half(Dtype dtype, std::span<const float> x, std::span<double> out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = round_to(dtype, x[i]);
}

MatrixBytes HalfScheme::weight_bytes(const MatrixShape& shape) const {
  return {.values = static_cast<std::size_t>(shape.rows * shape.cols) * sizeof(std::uint16_t)};
}

void HalfScheme::quantize_weight(std::span<const float> w, const Matrix& out) const {
  const auto bits = as<std::uint16_t>(out.values);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = to_bits(dtype_, w[i]);
}

void HalfScheme::dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                                   std::span<double> out) const {
  const auto bits = as<std::uint16_t>(w.values);
  const auto first = static_cast<std::size_t>(begin * w.shape.cols);
  const auto count = static_cast<std::size_t>((end - begin) * w.shape.cols);
  for (std::size_t i = 0; i < count; ++i) out[i] = to_float(dtype_, bits[first + i]);
}

void HalfScheme::emulate_activation(std::span<const float> x, const ActivationShape& /*shape*/,
                                    std::span<double> out) const {
  emulate_half(dtype_, x, out);
}

}  // namespace moegauge
