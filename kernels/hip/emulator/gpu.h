// The processor that kernels see when they run on the CPU: the same names as device/amdgcn.h.
//
// A GPU thread is a fiber. Barriers and whatever lanes of a wave do together hand control to the
// scheduler (block.h), which also finds what a GPU would not tell: barriers that some threads never
// reach, and lanes that part ways. Places in the source are passed along so that it can name them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#define __host__
#define __device__
#define __forceinline__ inline

#include "kernels/device/platform.h"
#include "reference/formats/fp16.h"

// See device/amdgcn.h. All threads of a block get the same memory.
#define MOE_LDS(Type, name) Type& name = *static_cast<Type*>(::moe::gpu::block_memory(sizeof(Type)))

namespace moe::gpu {

// Where a thread is in the source.
struct Place {
  const char* file;
  int line;
};
// The caller's place, as a default argument.
#define MOE_PLACE ::moe::gpu::Place at = {__builtin_FILE(), __builtin_LINE()}

int thread();
int block();
void sync(MOE_PLACE);
void sync_shared(MOE_PLACE);
void* block_memory(std::size_t bytes);

// What lanes of a wave do together. All lanes must come to the same place.
int uniform(int value, MOE_PLACE);
std::uint32_t shuffle(std::uint32_t value, int lane, MOE_PLACE);  // of that lane of the wave
std::uint32_t shuffle_xor(std::uint32_t value, int mask, MOE_PLACE);
int lane_in_wave();

// In the order of the table in matrix.cc.
enum class Instruction : int {
  Mfma16x16x32Fp8,
  Mfma32x32x16Fp8,
  Mfma16x16x32I8,
  Mfma32x32x16I8,
  Mfma16x16x16Bf16,
  Mfma32x32x8Bf16,
  Mfma16x16x16F16,
  Mfma32x32x8F16,
  Mfma16x16x32Bf16,
  Mfma32x32x16Bf16,
  Mfma16x16x32F16,
  Mfma32x32x16F16,
  Wmma16x16x16Fp8,
  Wmma16x16x16I8,
  Wmma16x16x16Bf16,
  Wmma16x16x16F16,
};
// sums += A B: a, b and sums are this lane's registers.
void matrix(Instruction instruction, const void* a, const void* b, void* sums, MOE_PLACE);

}  // namespace moe::gpu

// The part of CUDA's vocabulary that kernels/device uses.
inline float __uint_as_float(unsigned v) { return std::bit_cast<float>(v); }
inline unsigned __float_as_uint(float v) { return std::bit_cast<unsigned>(v); }
inline float __expf(float v) { return std::exp(v); }
// Not every host compiler has a 16-bit type of its own.
inline float __half_as_float(unsigned short bits) { return moegauge::fp16_to_float(bits); }
inline unsigned short __float_as_half(float v) { return moegauge::float_to_fp16(v); }
inline float __fdividef(float a, float b) { return a / b; }
inline int __shfl(int value, int lane, int width, MOE_PLACE) {
  const int from = (moe::gpu::lane_in_wave() & ~(width - 1)) | (lane & (width - 1));
  return static_cast<int>(moe::gpu::shuffle(static_cast<unsigned>(value), from, at));
}
inline int __shfl_up(int value, int distance, int width, MOE_PLACE) {
  const int self = moe::gpu::lane_in_wave();
  const int from = (self & (width - 1)) < distance ? self : self - distance;
  return static_cast<int>(moe::gpu::shuffle(static_cast<unsigned>(value), from, at));
}
// One thread runs at a time, so that these are atomic as they are.
inline int atomicAdd(int* p, int v) {
  const int old = *p;
  *p += v;
  return old;
}
inline unsigned atomicMax(unsigned* p, unsigned v) {
  const unsigned old = *p;
  if (v > old) *p = v;
  return old;
}

namespace moe {
using std::fabs;
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
}  // namespace moe
