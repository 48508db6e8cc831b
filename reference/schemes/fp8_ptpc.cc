// fp8_ptpc: E4M3 weights with an fp32 scale per output channel, activations quantised on the fly
// per token ("per-token activation, per-channel weight").
#include <algorithm>

#include "reference/schemes/byte_scheme.h"
#include "reference/schemes/units.h"

namespace moegauge {
namespace {

// Here engines bound the scale itself from below, not amax: 1 / (448 * 512) for E4M3FN.
float token_scale(float amax, float maximum) {
  return std::max(amax / maximum, 1.0f / (maximum * 512.0f));
}

}  // namespace

SchemeFamily fp8_ptpc_family() {
  return {
      .name = "fp8_ptpc",
      .options = "[_fnuz|_fnuz224]",
      .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
        const ByteElement element = take_fp8_flavour(options);
        return std::make_unique<ByteScheme>(ByteSchemeSpec{
            .name = "fp8_ptpc" + flavour_suffix(element),
            .config_dtype = "fp8_w8a8",
            .element = element,
            .weight_unit = {1, 0},
            .activation_unit = {1, 0},
            .weight_scale = [](float amax, float maximum) { return dynamic_scale(amax, maximum); },
            .activation_scale = token_scale});
      }};
}

}  // namespace moegauge
