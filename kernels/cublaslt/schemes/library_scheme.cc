#include "kernels/cublaslt/schemes/library_scheme.h"

#include <algorithm>

namespace moegauge::cublaslt {

bool serves_e4m3(const SchemeTraits& traits, ScaleUnit weight, ScaleUnit activation) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  return w.element == Element::e4m3fn && x.element == Element::e4m3fn &&
         w.scale == ScaleKind::fp32 && x.scale == ScaleKind::fp32 && w.unit == weight &&
         x.unit == activation;
}

bool serves_integers(const SchemeTraits& traits, Element element) {
  const OperandTraits& w = traits.weight;
  return w.element == element && traits.activation.element == Element::activation_dtype &&
         w.scale == ScaleKind::activation_dtype && w.unit.rows == 1;
}

const LibraryScheme* find_scheme(const Scheme& scheme) {
  const SchemeTraits traits = scheme.traits();
  const auto found = std::ranges::find_if(
      library_schemes(), [&](const LibraryScheme* family) { return family->serves(traits); });
  return found == library_schemes().end() ? nullptr : *found;
}

}  // namespace moegauge::cublaslt
