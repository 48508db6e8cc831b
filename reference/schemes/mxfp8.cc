// mxfp8: E4M3 weights and activations with an E8M0 scale per 1x32 group (OCP MX Specification 1.0).
// The scale is the smallest power of two under which no element exceeds the maximum, 448; the
// option "floor" takes floor(log2(amax)) instead, as some engines do, so that the largest elements
// lie in [1, 2). The specification knows OCP's E4M3 only; in FNUZ the rule is the same with that
// maximum.
#include "reference/schemes/byte_scheme.h"

namespace moegauge {

SchemeFamily mxfp8_family() {
  return {.name = "mxfp8",
          .options = "[_floor][_fnuz|_fnuz224]",
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            const ByteElement element = take_fp8_flavour(options);
            const bool floor = options.take("floor");
            const ScaleRule rule = {.kind = floor ? ScaleRule::Kind::power_of_two_floor
                                                  : ScaleRule::Kind::power_of_two_ceil};
            return std::make_unique<ByteScheme>(ByteSchemeSpec{
                .name = std::string("mxfp8") + (floor ? "_floor" : "") + flavour_suffix(element),
                .config_dtype = "mxfp8",
                .element = element,
                .scale_kind = ScaleKind::e8m0,
                .weight_unit = {1, 32},
                .activation_unit = {1, 32},
                .weight_rule = rule,
                .activation_rule = rule,
                .limits = {.relative_l2 = 0.0064, .worst_token = 0.052}});
          }};
}

}  // namespace moegauge
