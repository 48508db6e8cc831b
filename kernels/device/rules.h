// Scale rules and activations, the parts of a scheme that are plain arithmetic.
#pragma once
#include "kernels/device/numeric.h"

namespace moe {

// Magnitude for an amax: elements that are not finite do not count.
MOE_DEVICE float finite_magnitude(float v) {
  const float mag = fabsf(v);
  return mag < __uint_as_float(0x7f800000u) ? mag : 0.0f;
}

// Block FP8: one scale for a 1x128 group; amax is floored at 1e-10.
MOE_DEVICE float block_scale(float amax) { return fmaxf(amax, 1e-10f) / kE4m3Max; }

// Per-token FP8: the scale itself is floored at 1/(448*512).
MOE_DEVICE float token_scale(float amax) {
  return fmaxf(amax / kE4m3Max, 1.0f / (kE4m3Max * 512.0f));
}

// v / scale, correctly rounded, from the rounded reciprocal: one Newton step on the
// quotient (Markstein). For finite v.
MOE_DEVICE float divide_finite(float v, float scale, float reciprocal) {
  const float q = v * reciprocal;
  return fmaf(fmaf(-q, scale, v), reciprocal, q);
}
// The same for any v: infinity, which the step would turn into NaN, saturates later.
MOE_DEVICE float divide_by_scale(float v, float scale, float reciprocal) {
  const float q = v * reciprocal;
  return fabsf(q) > 2.0f * kE4m3Max ? q : divide_finite(v, scale, reciprocal);
}

// silu(gate) * up in fp32. exp2 of a scaled argument is the hardware's own
// exponential; its error (2 ulp) is far below the next rounding point.
MOE_DEVICE float silu_and_mul(float gate, float up) {
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

}  // namespace moe
