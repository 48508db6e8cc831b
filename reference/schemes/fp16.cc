// fp16: weights and activations in fp16, nothing quantised.
#include "reference/schemes/family.h"
#include "reference/schemes/half.h"

namespace moegauge {

SchemeFamily fp16_family() {
  return {
      .name = "fp16", .options = "", .make = [](SchemeOptions&) -> std::unique_ptr<const Scheme> {
        return std::make_unique<HalfScheme>("fp16", Dtype::fp16);
      }};
}

}  // namespace moegauge
