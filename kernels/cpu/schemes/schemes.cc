#include <array>

#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {

const CpuScheme& half_scheme();
const CpuScheme& fp8_block_scheme();

std::span<const CpuScheme* const> cpu_schemes() {
  static const std::array schemes = {&half_scheme(), &fp8_block_scheme()};
  return schemes;
}

std::optional<Served> find_recipe(const Scheme& scheme, const Layer& layer) {
  const SchemeTraits traits = scheme.traits();
  for (const CpuScheme* candidate : cpu_schemes()) {
    if (const std::optional<Recipe> recipe = candidate->recipe(traits, layer)) {
      return Served{candidate, *recipe};
    }
  }
  return std::nullopt;
}

}  // namespace moegauge::cpu
