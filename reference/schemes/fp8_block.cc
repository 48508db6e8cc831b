// fp8_block: E4M3 weights with an fp32 scale per 128x128 block, activations quantised on the fly
// per token and group of 128, as DeepSeek-V3 is served (DeepSeek-AI 2024, section 3.3.2).
//
// The option "frommx": its weights were MXFP8 before, converted as reference/convert does it. So
// its error against the unquantised layer holds both roundings.
#include "reference/convert/mxfp8_to_block.h"
#include "reference/formats/fp8.h"
#include "reference/schemes/byte_scheme.h"
#include "reference/schemes/matrix_storage.h"
#include "reference/schemes/units.h"

namespace moegauge {

SchemeFamily mxfp8_family();

namespace {

class FromMx final : public ByteScheme {
 public:
  using ByteScheme::ByteScheme;

  std::string config_scheme() const override { return "fp8_block"; }
  void quantize_weight(std::span<const float> w, const Matrix& out) const override {
    SchemeOptions none({});
    const auto mx = mxfp8_family().make(none);
    MatrixStorage before(*mx, out.shape);
    mx->quantize_weight(w, before.view());
    const Matrix from = before.view();
    ThreadPool alone(1);
    const auto values = as<std::uint8_t>(out.values);
    mxfp8_to_block({.rows = out.shape.rows,
                    .cols = out.shape.cols,
                    .values = as<std::uint8_t>(from.values),
                    .scales = as<std::uint8_t>(from.scales)},
                   {.fnuz = spec().element.element == Element::e4m3fnuz}, alone,
                   as<float>(out.scales),
                   [values](std::int64_t first, std::span<const std::uint8_t> part) {
                     std::ranges::copy(part, values.begin() + first);
                   });
  }
};

}  // namespace

SchemeFamily fp8_block_family() {
  return {.name = "fp8_block",
          .options = "[_frommx][_fnuz|_fnuz224]",
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            ByteElement element = take_fp8_flavour(options);
            const bool from_mx = options.take("frommx");
            ByteSchemeSpec spec = {.name = std::string("fp8_block") + (from_mx ? "_frommx" : "") +
                                           flavour_suffix(element),
                                   .config_dtype = "fp8_w8a8",
                                   .config_block_shape = std::pair(128, 128),
                                   .element = element,
                                   .weight_unit = {128, 128},
                                   .activation_unit = {1, 128},
                                   .weight_rule = kFlooredAmax,
                                   .activation_rule = kFlooredAmax,
                                   .limits = {.relative_l2 = 0.0027, .worst_token = 0.01}};
            if (!from_mx) return std::make_unique<ByteScheme>(std::move(spec));
            // OCP's 448 keeps its byte, which is 224 in FNUZ.
            if (element.element == Element::e4m3fnuz) spec.element.weight_max = kE4m3fnMax / 2;
            return std::make_unique<FromMx>(std::move(spec));
          }};
}

}  // namespace moegauge
