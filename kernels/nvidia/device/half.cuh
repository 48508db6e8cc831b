// The layer's 16-bit activations, bf16 or fp16, two in a word.
#pragma once
#include "kernels/device/numeric.h"

namespace moe {

template <bool kFp16>
struct Half {
  static constexpr u32 kInfinity = kFp16 ? 0x7c00u : 0x7f80u;

  static MOE_DEVICE float low(u32 pair) {
    if constexpr (!kFp16) return bf16_low(pair);
    float v;
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, l;\n}" : "=f"(v) : "r"(pair));
    return v;
  }
  static MOE_DEVICE float high(u32 pair) {
    if constexpr (!kFp16) return bf16_high(pair);
    float v;
    asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, h;\n}" : "=f"(v) : "r"(pair));
    return v;
  }
  // To nearest even; `low` lands in bits 0..15.
  static MOE_DEVICE u32 pack(float low, float high) {
    if constexpr (!kFp16) return pack_bf16(low, high);
    u32 packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
};

}  // namespace moe
