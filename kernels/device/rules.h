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

// int8: the amax of block FP8, mapped to 127.
MOE_DEVICE float int8_scale(float amax) { return fmaxf(amax, 1e-10f) / 127.0f; }
// To nearest even, clamped to +-127. In a float between 2^23 and 2^24 the last mantissa bit is 1,
// so that an addition rounds, and its last byte is the integer: conversions are slower.
MOE_DEVICE u32 int8_code(float v) {
  return __float_as_uint(fminf(fmaxf(v, -127.0f), 127.0f) + 12582912.0f) & 0xffu;
}

// Microscaling: E8M0 code in the low byte of `code`, 2^(code - 127); 255 (NaN) is not held.
MOE_DEVICE float e8m0_to_float(u32 code) {
  return __uint_as_float(max((code & 0xffu) << 23, 0x00400000u));
}
// The least power of two, from 2^-127 on, under which `amax` does not exceed 448 (= 1.75 * 2^8).
MOE_DEVICE float mx_scale(float amax) {
  const u32 bits = __float_as_uint(amax);
  const int code = static_cast<int>(bits >> 23) - 8 + ((bits & 0x7fffffu) > 0x600000u ? 1 : 0);
  return e8m0_to_float(static_cast<u32>(max(code, 0)));
}
// And the greatest that does not exceed `amax`.
MOE_DEVICE float mx_scale_floor(float amax) { return e8m0_to_float(__float_as_uint(amax) >> 23); }

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
// The same for two elements of one token, which share a reciprocal: the special function unit makes
// three values for them instead of four. 1 + e^40 squared is far inside fp32, and beyond a gate of
// -40 a result below 1e-15 of `up` replaces one that is smaller still. NaN reaches both.
MOE_DEVICE void silu_and_mul(float& gate0, float& gate1, float up0, float up1) {
  const float a = 1.0f + __expf(fminf(-gate0, 40.0f)), b = 1.0f + __expf(fminf(-gate1, 40.0f));
  const float both = __fdividef(1.0f, a * b);
  gate0 = gate0 * (b * both) * up0;
  gate1 = gate1 * (a * both) * up1;
}

// Largest finite magnitude of kCount values from `v` on, `stride` apart. What is not finite does
// not count, and is rare enough to be looked for only where the plain maximum shows it; fmaxf
// passes over NaN by itself.
template <int kCount, int kStride = 1>
MOE_DEVICE float finite_amax(const float* v) {
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kCount; ++i) amax = fmaxf(amax, fabsf(v[i * kStride]));
  if (amax < __uint_as_float(0x7f800000u)) return amax;
  amax = 0.0f;
#pragma unroll
  for (int i = 0; i < kCount; ++i) amax = fmaxf(amax, finite_magnitude(v[i * kStride]));
  return amax;
}

}  // namespace moe
