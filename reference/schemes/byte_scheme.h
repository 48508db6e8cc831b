// For the files of this folder: what the schemes have in common that hold weights and activations
// in elements of one byte, FP8 or int8, with one scale per unit of elements.
//
// Canonical storage: values [rows, cols], one byte each; scales [ceil(rows / unit.rows),
// ceil(cols / unit.cols)], fp32 or E8M0. Blocks are counted over all 2N rows of w13, so that with a
// ragged N one block may hold the last gate rows and the first up rows.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reference/schemes/family.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

// The element type with the largest magnitudes that scaled weights and activations take in it.
struct ByteElement {
  Element element = Element::e4m3fn;
  float weight_max = 0, activation_max = 0;
};
// E4M3FN, or FNUZ by the option "fnuz" (maximum 240) or "fnuz224" (activations saturate at 224).
ByteElement take_fp8_flavour(SchemeOptions& options);
// "", "_fnuz" or "_fnuz224": the option that gave this flavour.
std::string flavour_suffix(const ByteElement& element);

// The scale of a unit: positive and finite.
float scale_of(const ScaleRule& rule, float amax, float maximum);

struct ByteSchemeSpec {
  std::string name;
  std::string_view config_dtype;
  std::optional<std::pair<int, int>> config_block_shape = std::nullopt;
  ByteElement element;
  ScaleKind scale_kind = ScaleKind::fp32;
  ScaleUnit weight_unit, activation_unit;
  ScaleRule weight_rule, activation_rule;
  bool static_activation_scale = false;
  // Of kernels that accumulate in fp32: 1.5 times the worst of 20 seeds (docs/method.md, Limits).
  ErrorLimits limits;
};

class ByteScheme : public Scheme {
 public:
  explicit ByteScheme(ByteSchemeSpec spec);

  std::string name() const override { return spec_.name; }
  SchemeTraits traits() const override;
  // Without the flavour.
  std::string config_scheme() const override;
  std::string_view config_dtype() const override { return spec_.config_dtype; }
  std::optional<std::pair<int, int>> config_block_shape() const override {
    return spec_.config_block_shape;
  }
  ErrorLimits error_limits(Dtype dtype, bool reduced_accumulation) const override;
  MatrixBytes weight_bytes(const MatrixShape& shape) const override;
  void quantize_weight(std::span<const float> w, const Matrix& out) const override;
  void dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                         std::span<double> out) const override;
  void emulate_activation(std::span<const float> x, const ActivationShape& shape,
                          std::span<double> out) const override;

 protected:
  const ByteSchemeSpec& spec() const { return spec_; }
  // codes[i] = rne(x[i] / scale) in fp32 division, saturating at `maximum`.
  void encode(std::span<const float> x, float scale, float maximum,
              std::span<std::uint8_t> codes) const;
  float decode(std::uint8_t code) const { return (*values_)[code]; }

 private:
  ByteSchemeSpec spec_;
  const std::array<float, 256>* values_;  // of all codes
};

}  // namespace moegauge
