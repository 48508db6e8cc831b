// Types and qualifiers that CUDA (nvcc, NVRTC) and HIP (hipcc, hipRTC) share.
// NVRTC has no host headers, so the fixed-width names are made here.
#pragma once

namespace moe {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8, "device integer widths");

}  // namespace moe

#define MOE_DEVICE __device__ __forceinline__
// For constants that a host compiler needs too.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define MOE_BOTH __host__ __device__
#else
#define MOE_BOTH
#endif

#if defined(__HIP_DEVICE_COMPILE__) || defined(MOE_EMULATED)  // or HIP's kernels on the CPU
#define MOE_HIP 1
#else
#define MOE_HIP 0
#endif
