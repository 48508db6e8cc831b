// fp8_ptpc: E4M3 weights with an fp32 scale per output channel, activations quantised on the fly
// per token ("per-token activation, per-channel weight").
#include "reference/schemes/byte_scheme.h"
#include "reference/schemes/units.h"

namespace moegauge {

SchemeFamily fp8_ptpc_family() {
  return {.name = "fp8_ptpc",
          .options = "[_fnuz|_fnuz224]",
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            const ByteElement element = take_fp8_flavour(options);
            return std::make_unique<ByteScheme>(ByteSchemeSpec{
                .name = "fp8_ptpc" + flavour_suffix(element),
                .config_dtype = "fp8_w8a8",
                .element = element,
                .weight_unit = {1, 0},
                .activation_unit = {1, 0},
                .weight_rule = kFlooredAmax,
                // Here engines bound the scale itself from below, not amax.
                .activation_rule = {.scale_floor = 1.0f / (element.activation_max * 512.0f)},
                // One rounding of the largest |h| that falls the other way moves the whole token's
                // scale.
                .limits = {.relative_l2 = 0.0055, .worst_token = 0.03}});
          }};
}

}  // namespace moegauge
