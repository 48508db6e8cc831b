// Number formats of both flavours, and the activations, in plain arithmetic: what the emulator ran
// is what the GPU runs. (The converting instructions round alike but differ in what they do beyond
// the largest number, and nobody here could check them.)
#pragma once
#include "kernels/hip/device/layer_args.h"
#include "kernels/hip/device/shared.h"

namespace moe {

// E4M3 of the architecture's flavour: nearest even, saturating at `maximum`, NaN kept. FNUZ's
// exponent bias is one more, so a number's code is the OCP code of twice the number; but zero has
// no sign, NaN is 0x80, and 0x7f is a number.
template <bool kFnuz>
MOE_DEVICE u8 encode_fp8(float v, float maximum) {
  const u32 bits = __float_as_uint(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return kFnuz ? 0x80u : static_cast<u8>(0x7fu | (bits >> 24 & 0x80u));
  const float limited = fminf(fabsf(v), maximum) * (kFnuz ? 2.0f : 1.0f);
  u32 code;
  if (limited < 0.015625f) {  // below 2^-6: subnormal, steps of 2^-9
    code = static_cast<u32>(rintf(limited * 512.0f));
  } else {
    const u32 mag = __float_as_uint(limited);
    code = ((mag + 0x7ffffu + ((mag >> 20) & 1u)) >> 20) - (120u << 3);  // exponent bias 127 to 7
  }
  if (kFnuz && code == 0) return 0;
  return static_cast<u8>(code | (bits >> 24 & 0x80u));
}

MOE_DEVICE u8 encode_int8(float v) {
  return static_cast<u8>(static_cast<int>(rintf(fminf(fmaxf(v, -127.0f), 127.0f))));
}

MOE_DEVICE float half_to_float(u16 bits, int fp16) {
  if (fp16 == 0) return bf16_to_float(bits);
  return __half_as_float(bits);
}
MOE_DEVICE u16 float_to_half(float v, int fp16) {
  if (fp16 == 0) return static_cast<u16>(pack_bf16(v, 0.0f));
  return __float_as_half(v);
}

MOE_DEVICE float activation_scale(const LayerArgs& args, float amax) {
  return fmaxf(fmaxf(amax, args.amax_floor) / args.maximum, args.scale_floor);
}

// erfc to a relative error of 1.2e-7 everywhere (Press et al., Numerical Recipes, 1992, erfcc), so
// that gelu keeps its precision where the normal distribution's tail is small.
MOE_DEVICE float erfc_of(float v) {
  const float z = fabsf(v), t = 1.0f / (1.0f + 0.5f * z);
  constexpr float kTerms[] = {-1.26551223f, 1.00002368f,  0.37409196f, 0.09678418f,  -0.18628806f,
                              0.27886807f,  -1.13520398f, 1.48851587f, -0.82215223f, 0.17087277f};
  float sum = kTerms[9];
#pragma unroll
  for (int i = 8; i >= 0; --i) sum = fmaf(sum, t, kTerms[i]);
  const float tail = t * __expf(sum - z * z);
  return v >= 0.0f ? tail : 2.0f - tail;
}

MOE_DEVICE float activate(const LayerArgs& args, float gate, float up) {
  switch (args.activation) {
    case Activate::silu:
      return silu_and_mul(gate, up);
    case Activate::gelu:
      return 0.5f * gate * erfc_of(gate * -0.70710678118654752f) * up;
    case Activate::gelu_tanh: {
      // 0.5 (1 + tanh u) = 1 / (1 + exp(-2u))
      const float u = 0.79788456080286536f * (gate + 0.044715f * gate * gate * gate);
      return __fdividef(gate, 1.0f + __expf(-2.0f * u)) * up;
    }
    case Activate::swiglu_clamped: {
      const float g = gate > args.limit ? args.limit : gate;  // NaN stays
      const float u = up > args.limit ? args.limit : up < -args.limit ? -args.limit : up;
      return (u + args.beta) * __fdividef(g, 1.0f + __expf(-args.alpha * g));
    }
  }
  return 0.0f;
}

}  // namespace moe
