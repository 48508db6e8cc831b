// What the kernels ask of an AMD GPU, from the compiler's own builtins: clang with -nogpuinc
// -nogpulib needs no header and no device library of ROCm.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))

#include "kernels/device/platform.h"

// Memory of the block, at most once in a kernel, not initialised.
#define MOE_LDS(Type, name) __shared__ Type name
// A kernel by the number of its threads.
#define MOE_KERNEL(threads) \
  __global__ __attribute__((amdgpu_flat_work_group_size(threads, threads)))

// The part of CUDA's vocabulary that kernels/device uses.
MOE_DEVICE float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
MOE_DEVICE unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
MOE_DEVICE float fabsf(float v) { return __builtin_fabsf(v); }
MOE_DEVICE float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
MOE_DEVICE float fminf(float a, float b) { return __builtin_fminf(a, b); }
MOE_DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MOE_DEVICE float rintf(float v) { return __builtin_rintf(v); }
// exp2 of a scaled argument and the approximate reciprocal: the hardware's own, to one or two ulp.
MOE_DEVICE float __expf(float v) { return __builtin_amdgcn_exp2f(v * 1.44269504088896341f); }
MOE_DEVICE float __half_as_float(unsigned short bits) {
  return static_cast<float>(__builtin_bit_cast(_Float16, bits));
}
MOE_DEVICE unsigned short __float_as_half(float v) {  // nearest even
  return __builtin_bit_cast(unsigned short, static_cast<_Float16>(v));
}
MOE_DEVICE float __fdividef(float a, float b) { return a * __builtin_amdgcn_rcpf(b); }
MOE_DEVICE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
MOE_DEVICE int max(int a, int b) { return a > b ? a : b; }
MOE_DEVICE int min(int a, int b) { return a < b ? a : b; }

MOE_DEVICE int atomicAdd(int* p, int v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
MOE_DEVICE unsigned atomicMax(unsigned* p, unsigned v) {
  return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

MOE_DEVICE int moe_lane_in_wave() {
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)));
}
MOE_DEVICE int __shfl(int value, int lane, int width) {
  const int from = (moe_lane_in_wave() & ~(width - 1)) | (lane & (width - 1));
  return __builtin_amdgcn_ds_bpermute(from * 4, value);
}
MOE_DEVICE int __shfl_up(int value, int distance, int width) {
  const int self = moe_lane_in_wave();
  const int from = (self & (width - 1)) < distance ? self : self - distance;
  return __builtin_amdgcn_ds_bpermute(from * 4, value);
}

namespace moe::gpu {

MOE_DEVICE int thread() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
MOE_DEVICE int block() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }

// All threads of the block; orders its memory, and the block's accesses to the device's.
MOE_DEVICE void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// Orders the block's memory only: loads from the device's stay in flight across it.
MOE_DEVICE void sync_shared() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

// A value that is the same in all lanes of a wave, as such.
MOE_DEVICE int uniform(int value) { return __builtin_amdgcn_readfirstlane(value); }

// The value of lane (own lane ^ mask).
MOE_DEVICE unsigned shuffle_xor(unsigned value, int mask) {
  const int from = moe::gpu::thread() ^ mask;  // waves start at multiples of their lanes
  return static_cast<unsigned>(__builtin_amdgcn_ds_bpermute(from * 4, static_cast<int>(value)));
}

}  // namespace moe::gpu
