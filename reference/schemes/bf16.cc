// bf16: weights and activations in bf16, nothing quantised.
#include "reference/schemes/family.h"
#include "reference/schemes/half.h"

namespace moegauge {

SchemeFamily bf16_family() {
  return {
      .name = "bf16", .options = "", .make = [](SchemeOptions&) -> std::unique_ptr<const Scheme> {
        return std::make_unique<HalfScheme>("bf16", Dtype::bf16);
      }};
}

}  // namespace moegauge
