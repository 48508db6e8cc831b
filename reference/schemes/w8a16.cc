// w8a16: int8 weights with scales per group of columns, 16-bit activations (GPTQ, AWQ and
// compressed-tensors checkpoints).
#include "reference/schemes/wna16.h"

namespace moegauge {

SchemeFamily w8a16_family() {
  return {.name = "w8a16",
          .options = kWnA16Options,
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            return make_wna16({.family = "w8a16", .config_dtype = "int8_w8a16", .bits = 8},
                              options);
          }};
}

}  // namespace moegauge
