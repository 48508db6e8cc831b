// mxfp8: E4M3 weights and activations with an E8M0 scale per 1x32 group (OCP MX Specification 1.0).
// The scale is the smallest power of two under which no element exceeds 448; the option "floor"
// takes floor(log2(amax)) instead, as some engines do, so that the largest elements lie in [1, 2).
#include "reference/formats/fp8.h"
#include "reference/schemes/byte_scheme.h"

namespace moegauge {

SchemeFamily mxfp8_family() {
  return {.name = "mxfp8",
          .options = "[_floor]",
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            const bool floor = options.take("floor");
            const ScaleRule rule = {.kind = floor ? ScaleRule::Kind::power_of_two_floor
                                                  : ScaleRule::Kind::power_of_two_ceil};
            return std::make_unique<ByteScheme>(
                ByteSchemeSpec{.name = floor ? "mxfp8_floor" : "mxfp8",
                               .config_dtype = "mxfp8",
                               .element = {Element::e4m3fn, kE4m3fnMax, kE4m3fnMax},
                               .scale_kind = ScaleKind::e8m0,
                               .weight_unit = {1, 32},
                               .activation_unit = {1, 32},
                               .weight_rule = rule,
                               .activation_rule = rule});
          }};
}

}  // namespace moegauge
