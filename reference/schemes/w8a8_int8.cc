// w8a8_int8: int8 weights in [-127, 127] with an fp32 scale per output channel, int8 activations
// quantised on the fly per token.
#include "reference/schemes/byte_scheme.h"
#include "reference/schemes/units.h"

namespace moegauge {

SchemeFamily w8a8_int8_family() {
  return {.name = "w8a8_int8",
          .options = "",
          .make = [](SchemeOptions&) -> std::unique_ptr<const Scheme> {
            return std::make_unique<ByteScheme>(
                ByteSchemeSpec{.name = "w8a8_int8",
                               .config_dtype = "int8_w8a8",
                               .element = {Element::int8, 127, 127},
                               .weight_unit = {1, 0},
                               .activation_unit = {1, 0},
                               .weight_rule = kFlooredAmax,
                               .activation_rule = kFlooredAmax,
                               .limits = {.relative_l2 = 0.0021, .worst_token = 0.0066}});
          }};
}

}  // namespace moegauge
