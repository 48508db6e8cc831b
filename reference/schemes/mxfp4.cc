// mxfp4: E2M1 weights with an E8M0 scale per 1x32 group (OCP MX Specification 1.0), as gpt-oss is
// published, with activations left in the layer's 16-bit type. The scale is the smallest power of
// two under which no element exceeds 6.
//
// Canonical storage: values [rows, ceil(cols / 2)], low nibble = even column; scales [rows,
// ceil(cols / 32)] E8M0. E2M1 has no NaN: a group that holds one carries it in its scale.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/int4.h"
#include "reference/schemes/family.h"
#include "reference/schemes/half.h"
#include "reference/schemes/units.h"

namespace moegauge {
namespace {

constexpr ScaleUnit kUnit = {1, 32};

class Mxfp4 final : public Scheme {
 public:
  std::string name() const override { return "mxfp4"; }
  SchemeTraits traits() const override {
    return {.weight = {.element = Element::e2m1,
                       .scale = ScaleKind::e8m0,
                       .unit = kUnit,
                       .lowest = -kE2m1Max,
                       .highest = kE2m1Max},
            .activation = {}};
  }
  std::string_view config_dtype() const override { return "mxfp4_w4a16"; }
  std::optional<std::pair<int, int>> config_block_shape() const override { return std::nullopt; }
  ErrorLimits error_limits(Dtype dtype, bool) const override { return half_limits(dtype); }

  MatrixBytes weight_bytes(const MatrixShape& shape) const override {
    return {.values = static_cast<std::size_t>(shape.rows * ceil_div(shape.cols, 2)),
            .scales = UnitGrid(shape.rows, shape.cols, kUnit).count()};
  }

  void quantize_weight(std::span<const float> w, const Matrix& out) const override {
    const UnitGrid grid(out.shape.rows, out.shape.cols, kUnit);
    const auto scales = as<std::uint8_t>(out.scales);
    const auto values = as<std::uint8_t>(out.values);
    for_each_unit(grid, [&](std::size_t index, const Rectangle& r) {
      const auto group = w.subspan(static_cast<std::size_t>(r.row * grid.cols + r.col),
                                   static_cast<std::size_t>(r.col_end - r.col));
      const bool nan = std::ranges::any_of(group, [](float v) { return std::isnan(v); });
      scales[index] = nan ? kE8m0Nan : e8m0_ceil(finite_amax(w, grid, r), kE2m1Max);
      const float scale = e8m0_to_float(scales[index]);
      // Groups begin at even columns, so each byte belongs to one of them.
      auto byte = static_cast<std::size_t>(r.row * ceil_div(grid.cols, 2) + r.col / 2);
      for (std::size_t i = 0; i < group.size(); i += 2) {
        const float second = i + 1 < group.size() ? group[i + 1] : 0.0f;
        values[byte++] =
            pack_nibbles(float_to_e2m1(group[i] / scale), float_to_e2m1(second / scale));
      }
    });
  }

  void dequantize_weight(const ConstMatrix& w, std::int64_t begin, std::int64_t end,
                         std::span<double> out) const override {
    const std::int64_t cols = w.shape.cols;
    const auto scales = as<std::uint8_t>(w.scales);
    const auto values = as<std::uint8_t>(w.values);
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const auto scale =
            static_cast<std::size_t>(row * ceil_div(cols, kUnit.cols) + c / kUnit.cols);
        const auto byte = static_cast<std::size_t>(row * ceil_div(cols, 2) + c / 2);
        const int code = nibble(values[byte], static_cast<int>(c % 2));
        out[static_cast<std::size_t>((row - begin) * cols + c)] =
            e2m1_to_float(static_cast<std::uint8_t>(code)) *
            static_cast<double>(e8m0_to_float(scales[scale]));
      }
    }
  }

  void emulate_activation(std::span<const float> x, const ActivationShape& shape,
                          std::span<double> out) const override {
    emulate_half(shape.dtype, x, out);
  }
};

}  // namespace

SchemeFamily mxfp4_family() {
  return {
      .name = "mxfp4", .options = "", .make = [](SchemeOptions&) -> std::unique_ptr<const Scheme> {
        return std::make_unique<Mxfp4>();
      }};
}

}  // namespace moegauge
