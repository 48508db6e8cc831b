#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

Numerics fp32_numerics(const Layer&, bool) {
  return {.gemm1_out = Precision::fp32,
          .act_out = Precision::activation_dtype,
          .pair_out = Precision::activation_dtype,
          .accumulate = Accumulate::fp32};
}

const CudaScheme* find_scheme(const Scheme& scheme, const Layer& layer) {
  const SchemeTraits traits = scheme.traits();
  for (const CudaScheme* served : cuda_schemes()) {
    if (!served->serves(traits, layer)) continue;
    return served->format != nullptr ? served->format(traits) : served;
  }
  return nullptr;
}

}  // namespace moegauge::cuda
