#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

const CudaScheme* find_scheme(const Scheme& scheme, const Layer& layer) {
  const SchemeTraits traits = scheme.traits();
  for (const CudaScheme* served : cuda_schemes()) {
    if (!served->serves(traits, layer)) continue;
    return served->format != nullptr ? served->format(traits) : served;
  }
  return nullptr;
}

}  // namespace moegauge::cuda
