#include "kernels/cpu/schemes/cpu_scheme.h"

namespace moegauge::cpu {

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
