// fp8_tensor: E4M3 weights and activations with one fp32 scale each per expert and per call. The
// activation scale is computed from all rows of the call, or calibrated ("static").
//
// Checkpoints quantise gate and up by themselves, but a kernel reads one scale: where the two
// differ, the half with the smaller scale is requantised to the larger, and keeps both roundings.
#include "reference/formats/fp8.h"
#include "reference/schemes/byte_scheme.h"
#include "reference/schemes/units.h"

namespace moegauge {
namespace {

class Fp8Tensor final : public ByteScheme {
 public:
  using ByteScheme::ByteScheme;

  void quantize_weight(std::span<const float> w, const Matrix& out) const override {
    if (out.shape.role == Role::w2) return ByteScheme::quantize_weight(w, out);
    const std::array<float, 2> scales = {half_scale(w, out.shape, 0), half_scale(w, out.shape, 1)};
    const float larger = std::max(scales[0], scales[1]);
    as<float>(out.scales)[0] = larger;
    const auto width = static_cast<std::size_t>(out.shape.cols);
    for (std::int64_t row = 0; row < out.shape.rows; ++row) {
      const auto begin = static_cast<std::size_t>(row) * width;
      const auto codes = as<std::uint8_t>(out.values).subspan(begin, width);
      const float own = scales[half_of(out.shape, row)];
      encode(w.subspan(begin, width), own, spec().element.weight_max, codes);
      if (own != larger) requantize(codes, own, larger);
    }
  }

 private:
  // 0 for gate rows, 1 for up rows.
  static std::size_t half_of(const MatrixShape& shape, std::int64_t row) {
    const bool up =
        shape.gate_up_order == GateUpOrder::interleaved ? row % 2 == 1 : row >= shape.rows / 2;
    return up ? 1 : 0;
  }

  float half_scale(std::span<const float> w, const MatrixShape& shape, std::size_t half) const {
    const UnitGrid grid(shape.rows, shape.cols, {1, 0});
    float amax = 0;
    for_each_unit(grid, [&](std::size_t row, const Rectangle& r) {
      if (half_of(shape, static_cast<std::int64_t>(row)) == half) {
        amax = std::max(amax, finite_amax(w, grid, r));
      }
    });
    return scale_of(spec().weight_rule, amax, spec().element.weight_max);
  }

  void requantize(std::span<std::uint8_t> codes, float from, float to) const {
    std::vector<float> values(codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i) values[i] = decode(codes[i]) * from;
    encode(values, to, spec().element.weight_max, codes);
  }
};

}  // namespace

SchemeFamily fp8_tensor_family() {
  return {.name = "fp8_tensor",
          .options = "[_static][_fnuz|_fnuz224]",
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            const ByteElement element = take_fp8_flavour(options);
            const bool is_static = options.take("static");
            return std::make_unique<Fp8Tensor>(
                ByteSchemeSpec{.name = std::string("fp8_tensor") + (is_static ? "_static" : "") +
                                       flavour_suffix(element),
                               .config_dtype = "fp8_w8a8",
                               .element = element,
                               .weight_unit = {0, 0},
                               .activation_unit = {0, 0},
                               .weight_rule = kFlooredAmax,
                               .activation_rule = kFlooredAmax,
                               .static_activation_scale = is_static,
                               .limits = {.relative_l2 = 0.0023, .worst_token = 0.0087}});
          }};
}

}  // namespace moegauge
