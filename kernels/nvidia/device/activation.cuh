// The activation function between the projections, over a thread's accumulators of gate and up.
#pragma once
#include "kernels/device/rules.h"
#include "kernels/nvidia/device/config.cuh"

namespace moe {

// Scale of a unit of activations that begins anew along K.
template <class C>
MOE_DEVICE float unit_scale(float amax) {
  return C::kMxFloor ? mx_scale_floor(amax) : C::kMx ? mx_scale(amax) : block_scale(amax);
}

// Of a whole row. int8 has no NaN: a row that holds one gets it as its scale, and until then as a
// magnitude of infinity, which no other element gives.
template <class C>
MOE_DEVICE float row_magnitude(float v) {
  return C::kInt8 && v != v ? __uint_as_float(0x7f800000u) : finite_magnitude(v);
}
template <class C>
MOE_DEVICE float row_scale(float amax) {
  if constexpr (!C::kInt8) return token_scale(amax);
  return amax < __uint_as_float(0x7f800000u) ? int8_scale(amax) : __uint_as_float(0x7fc00000u);
}
// Two scaled values as the bytes that are multiplied.
template <class C>
MOE_DEVICE u16 pack_codes(float low, float high) {
  if constexpr (C::kInt8) return static_cast<u16>(int8_code(low) | int8_code(high) << 8);
  return pack_e4m3(low, high);
}

// gelu(gate) * up, by erf; and by tanh, whose (1 + tanh(z)) / 2 is a sigmoid of 2 z.
MOE_DEVICE float gelu_and_mul(float gate, float up) { return 0.5f * gate * erfcf(gate * -0.70710678118654752f) * up; }
MOE_DEVICE float gelu_tanh_and_mul(float gate, float up) {
  const float z2 = 1.5957691216057308f * gate * fmaf(0.044715f * gate, gate, 1.0f);
  return __fdividef(gate, 1.0f + __expf(-z2)) * up;
}
// Comparisons that keep a NaN, which fminf would drop.
MOE_DEVICE float swiglu_clamped(float gate, float up, float alpha, float beta, float limit) {
  const float g = gate > limit ? limit : gate;
  const float u = up > limit ? limit : up < -limit ? -limit : up;
  return (u + beta) * __fdividef(g, 1.0f + __expf(-alpha * g));
}

// gate = act(gate, up). kSameToken: elements i and i + kSameToken (i even in those pairs' order) are
// of one token: 1 where tokens are rows, 2 where they are columns.
template <class C, int kSameToken, int kCount>
MOE_DEVICE void activate(const LayerArgs& args, float (&gate)[kCount], const float (&up)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
#pragma unroll
    for (int two = 0; two < 2; ++two) {
      const int a = i + (kSameToken == 1 ? 2 * two : two), b = a + kSameToken;
      if constexpr (C::kActivation == Activation::silu) {
        silu_and_mul(gate[a], gate[b], up[a], up[b]);
      } else {
#pragma unroll
        for (int e = a; e <= b; e += kSameToken) {
          if constexpr (C::kActivation == Activation::gelu) gate[e] = gelu_and_mul(gate[e], up[e]);
          else if constexpr (C::kActivation == Activation::gelu_tanh) gate[e] = gelu_tanh_and_mul(gate[e], up[e]);
          else gate[e] = swiglu_clamped(gate[e], up[e], args.act_alpha, args.act_beta, args.act_limit);
        }
      }
    }
  }
}

}  // namespace moe
