#include "kernels/cuda/schemes/fp8_schemes.h"

namespace moegauge::cuda {

bool serves_e4m3(const SchemeTraits& traits, ScaleUnit weight, ScaleUnit activation) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  return w.element == Element::e4m3fn && x.element == Element::e4m3fn &&
         w.scale == ScaleKind::fp32 && x.scale == ScaleKind::fp32 && w.unit == weight &&
         x.unit == activation;
}

Numerics e4m3_numerics(Precision act_out) {
  return {.gemm1_out = Precision::fp32,
          .act_out = act_out,
          .pair_out = Precision::activation_dtype,
          .accumulate = Accumulate::reduced};
}

Numerics waiting_numerics(const Layer&, bool) { return e4m3_numerics(Precision::activation_dtype); }

}  // namespace moegauge::cuda
