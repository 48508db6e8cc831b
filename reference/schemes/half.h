// For the files of this folder: activations that stay in the layer's own 16-bit type, and the two
// schemes whose weights do so too.
//
// Canonical storage of those: values [rows, cols], two bytes each.
#pragma once

#include <utility>

#include "reference/schemes/scheme.h"

namespace moegauge {

// Limits where all that a kernel may add is rounding to the activation dtype.
ErrorLimits half_limits(Dtype dtype);
// out = x rounded to the dtype.
void emulate_half(Dtype dtype, std::span<const float> x, std::span<double> out);

class HalfScheme final : public Scheme {
 public:
  HalfScheme(std::string name, Dtype dtype) : name_(std::move(name)), dtype_(dtype) {}

  std::string name() const override { return name_; }
  SchemeTraits traits() const override { return {.weight = {}, .activation = {}, .only = dtype_}; }
  std::string_view config_dtype() const override { return ""; }
  std::optional<std::pair<int, int>> config_block_shape() const override { return std::nullopt; }
  ErrorLimits error_limits(Dtype, bool) const override { return half_limits(dtype_); }
  MatrixBytes weight_bytes(const MatrixShape& shape) const override;
  void quantize_weight(std::span<const float> w, const Matrix& out) const override;
  void dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                         std::span<double> out) const override;
  void emulate_activation(std::span<const float> x, const ActivationShape& shape,
                          std::span<double> out) const override;

 private:
  std::string name_;
  Dtype dtype_;
};

}  // namespace moegauge
