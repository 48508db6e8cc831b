// Eight elements of x on their way to codes.
#pragma once
#include "kernels/device/rules.h"
#include "kernels/nvidia/device/activation.cuh"

namespace moe {

struct Vec8 {
  u32 w[4];  // eight elements of x
};

MOE_DEVICE Vec8 load8(const u16* p) {
  const uint4 v = *reinterpret_cast<const uint4*>(p);
  return {{v.x, v.y, v.z, v.w}};
}
// Largest finite magnitude of eight; `finite` turns false when some are not.
template <class C>
MOE_DEVICE float max8(const Vec8& v, bool& finite) {
  const u32 pair = max_magnitude_bf16(max_magnitude_bf16(v.w[0], v.w[1]), max_magnitude_bf16(v.w[2], v.w[3]));
  const u32 bits = max(pair & 0xffffu, pair >> 16);
  if (bits < C::H::kInfinity) return C::H::low(bits);
  finite = false;
  float amax = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    amax = fmaxf(amax, fmaxf(row_magnitude<C>(C::H::low(v.w[i])), row_magnitude<C>(C::H::high(v.w[i]))));
  return amax;
}
template <class C>
MOE_DEVICE uint2 quantise8(const Vec8& v, float scale, bool finite) {
  const float r = __frcp_rn(scale);
  u16 q[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float a = C::H::low(v.w[i]), b = C::H::high(v.w[i]);
    q[i] = finite ? pack_codes<C>(divide_finite(a, scale, r), divide_finite(b, scale, r))
                  : pack_codes<C>(divide_by_scale(a, scale, r), divide_by_scale(b, scale, r));
  }
  return make_uint2(q[0] | (static_cast<u32>(q[1]) << 16), q[2] | (static_cast<u32>(q[3]) << 16));
}

}  // namespace moe
