// Number formats on the device: bf16 and E4M3 (OCP), to and from fp32.
// The CUDA side uses the converting instructions; the portable forms below
// give the same bits and are what HIP's FNUZ variant will start from.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

constexpr float kE4m3Max = 448.0f;

MOE_DEVICE float bf16_to_float(u16 b) { return __uint_as_float(static_cast<u32>(b) << 16); }

MOE_DEVICE float bf16_low(u32 pair) { return __uint_as_float(pair << 16); }
MOE_DEVICE float bf16_high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

// Larger magnitude of each half of two bf16 pairs, as bits: bf16 magnitudes order as
// unsigned integers, infinity (0x7f80) and NaN above every finite number.
MOE_DEVICE u32 max_magnitude_bf16(u32 a, u32 b) {
  a &= 0x7fff7fffu;
  b &= 0x7fff7fffu;
#if defined(__CUDA_ARCH__)
  return __vmaxu2(a, b);
#else
  const u32 low = max(a & 0xffffu, b & 0xffffu), high = max(a >> 16, b >> 16);
  return low | (high << 16);
#endif
}

// Two fp32 to packed bf16, round to nearest even; `low` lands in bits 0..15.
MOE_DEVICE u32 pack_bf16(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  auto round = [](float v) -> u32 {
    u32 bits = __float_as_uint(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  };
  return round(low) | (round(high) << 16);
#endif
}

// Portable E4M3FN encoder: nearest even, saturating (infinity too), NaN kept.
MOE_DEVICE u8 encode_e4m3(float v) {
  const u32 bits = __float_as_uint(v);
  const u32 sign = (bits >> 24) & 0x80u;
  const u32 mag = bits & 0x7fffffffu;
  if (mag > 0x7f800000u) return static_cast<u8>(sign | 0x7fu);
  if (mag >= 0x43e80000u) return static_cast<u8>(sign | 0x7eu);  // >= 464 rounds past 448
  if (mag < 0x3c800000u) {                                       // below 2^-6: subnormal, step 2^-9
    const float steps = __uint_as_float(mag) * 512.0f;
    return static_cast<u8>(sign | static_cast<u32>(rintf(steps)));
  }
  const u32 rounded = mag + 0x7ffffu + ((mag >> 20) & 1u);
  const u32 code = (rounded >> 20) - (120u << 3);  // exponent bias 127 to 7
  return static_cast<u8>(sign | (code > 0x7eu ? 0x7eu : code));
}

// Two fp32 to two E4M3 codes, `low` in bits 0..7.
MOE_DEVICE u16 pack_e4m3(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  u16 packed;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(packed) : "f"(high), "f"(low));
  return packed;
#else
  return static_cast<u16>(encode_e4m3(low) | (encode_e4m3(high) << 8));
#endif
}

}  // namespace moe
