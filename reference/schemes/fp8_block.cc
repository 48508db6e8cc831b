// fp8_block: E4M3 weights with an fp32 scale per 128x128 block, activations quantised on the fly
// per token and group of 128, as DeepSeek-V3 is served (DeepSeek-AI 2024, section 3.3.2).
#include "reference/schemes/byte_scheme.h"
#include "reference/schemes/units.h"

namespace moegauge {

SchemeFamily fp8_block_family() {
  return {.name = "fp8_block",
          .options = "[_fnuz|_fnuz224]",
          .make = [](SchemeOptions& options) -> std::unique_ptr<const Scheme> {
            const ByteElement element = take_fp8_flavour(options);
            return std::make_unique<ByteScheme>(
                ByteSchemeSpec{.name = "fp8_block" + flavour_suffix(element),
                               .config_dtype = "fp8_w8a8",
                               .config_block_shape = std::pair(128, 128),
                               .element = element,
                               .weight_unit = {128, 128},
                               .activation_unit = {1, 128},
                               .weight_rule = kFlooredAmax,
                               .activation_rule = kFlooredAmax});
          }};
}

}  // namespace moegauge
