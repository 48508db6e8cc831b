// w4a16: int4 weights with scales per group of columns, 16-bit activations (GPTQ, AWQ and
// compressed-tensors checkpoints).
#include "reference/schemes/wna16.h"

namespace moegauge {

SchemeFamily w4a16_family() {
  return {.name = "w4a16",
          .options = kWnA16Options,
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            return make_wna16({.family = "w4a16", .config_dtype = "int4_w4a16", .bits = 4},
                              options);
          }};
}

}  // namespace moegauge
