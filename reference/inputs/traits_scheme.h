// For tests: a scheme that is nothing but its traits. Weights are "quantised" by copying them as
// fp32.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "reference/schemes/scheme.h"

namespace moegauge {

class TraitsScheme final : public Scheme {
 public:
  explicit TraitsScheme(const SchemeTraits& traits) : traits_(traits) {}

  std::string name() const override { return "traits"; }
  SchemeTraits traits() const override { return traits_; }
  std::string_view config_dtype() const override { return ""; }
  std::optional<std::pair<int, int>> config_block_shape() const override { return std::nullopt; }
  ErrorLimits error_limits(Dtype, bool) const override { return {}; }
  MatrixBytes weight_bytes(const MatrixShape& shape) const override {
    return {.values = sizeof(float) * static_cast<std::size_t>(shape.rows * shape.cols)};
  }
  void quantize_weight(std::span<const float> w, const Matrix& out) const override {
    std::memcpy(out.values.data(), w.data(), w.size_bytes());
  }
  void dequantize_weight(const ConstMatrix&, std::int64_t, std::int64_t,
                         std::span<double>) const override {}
  void emulate_activation(std::span<const float>, const ActivationShape&,
                          std::span<double>) const override {}

 private:
  SchemeTraits traits_;
};

inline OperandTraits scaled_operand(Element element, ScaleKind scale, const ScaleUnit& unit,
                                    double highest, double lowest) {
  return {.element = element, .scale = scale, .unit = unit, .lowest = lowest, .highest = highest};
}

inline std::shared_ptr<const Scheme> plain_scheme() {
  return std::make_shared<TraitsScheme>(SchemeTraits{});
}

inline std::shared_ptr<const Scheme> block_scheme() {
  return std::make_shared<TraitsScheme>(SchemeTraits{
      .weight = scaled_operand(Element::e4m3fn, ScaleKind::fp32, {128, 128}, 448, -448),
      .activation = scaled_operand(Element::e4m3fn, ScaleKind::fp32, {1, 128}, 448, -448)});
}

}  // namespace moegauge
