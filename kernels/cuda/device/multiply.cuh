// The two math warpgroups' main loop: tiles of 128 weight rows (two blocks of 64)
// by kTokenTile tokens each, from the ring into registers.
#pragma once
#include "kernels/device/rules.h"
#include "kernels/cuda/device/producers.cuh"
#include "kernels/nvidia/device/wgmma.cuh"

namespace moe {

// Barriers: 1 for both math warpgroups, 2 and 3 for each of them.
MOE_DEVICE void sync_math() { sync_threads(1, kMathThreads); }
MOE_DEVICE void sync_group(int group) { sync_threads(2 + group, 128); }

// A math thread's place. `thread` counts over both warpgroups.
struct Place {
  int thread, group, warp, lane;
  MOE_DEVICE explicit Place(int t) : thread(t), group(t / 128), warp(t / 32 % 4), lane(t % 32) {}
};
// The same, computed again: what an epilogue derives from it then takes no registers in the main
// loop before it, where there are none to spare.
MOE_DEVICE Place place_again(const Place& at) {
  int thread = at.thread;
  asm volatile("" : "+r"(thread));
  return Place(thread);
}

template <class C>
using Tile = float[C::kTokenTile / 2];  // one 64-row block, a thread's share

MOE_DEVICE float shared_float(u32 address) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address));
  return v;
}
MOE_DEVICE float2 shared_float2(u32 address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address));
  return v;
}

MOE_DEVICE uint4 shared_line(u32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
  return v;
}

// D = A B^T over the 128 bytes of K in a stage. Sum: float, int for int8.
template <class C, class Sum>
MOE_DEVICE void multiply_stage(Sum (&d)[C::kTokenTile / 2], u32 weights, u32 tokens, int accumulate) {
  const u32 a = wgmma_descriptor(weights), b = wgmma_descriptor(tokens);
#pragma unroll
  for (int k = 0; k < 4; ++k) {  // 32 bytes of K an instruction
    if constexpr (C::kInt8) Wgmma<C::kTokenTile>::s8(d, a + 2 * k, b + 2 * k, k > 0 ? 1 : accumulate);
    else if constexpr (C::kFp16 && !C::kFp8) Wgmma<C::kTokenTile>::f16(d, a + 2 * k, b + 2 * k, k > 0 ? 1 : accumulate);
    else if constexpr (C::kFp8) Wgmma<C::kTokenTile>::e4m3(d, a + 2 * k, b + 2 * k, k > 0 ? 1 : accumulate);
    else Wgmma<C::kTokenTile>::bf16(d, a + 2 * k, b + 2 * k, k > 0 ? 1 : accumulate);
  }
}

// sum += part, times the weight block's scale and each token's where there are any.
template <class C>
MOE_DEVICE void promote(Tile<C>& sum, const Tile<C>& part, const float (&weight_scale)[2], u32 token_scales, int lane) {
  if constexpr (C::kBlockScales) {
#pragma unroll
    for (int j = 0; j < C::kTokenTile / 8; ++j) {
      const float2 t = shared_float2(token_scales + (8 * j + 2 * (lane % 4)) * 4);
      const float s0 = t.x * weight_scale[0], s1 = t.y * weight_scale[0];
      sum[4 * j] = fmaf(part[4 * j], s0, sum[4 * j]);
      sum[4 * j + 1] = fmaf(part[4 * j + 1], s1, sum[4 * j + 1]);
      if constexpr (C::kFineScales) {
        sum[4 * j + 2] = fmaf(part[4 * j + 2], t.x * weight_scale[1], sum[4 * j + 2]);
        sum[4 * j + 3] = fmaf(part[4 * j + 3], t.y * weight_scale[1], sum[4 * j + 3]);
      } else {
        sum[4 * j + 2] = fmaf(part[4 * j + 2], s0, sum[4 * j + 2]);
        sum[4 * j + 3] = fmaf(part[4 * j + 3], s1, sum[4 * j + 3]);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < C::kTokenTile / 2; ++i) sum[i] += part[i];
  }
}

// Both blocks with fp32 sums outside the tensor core. Narrow tiles have registers
// for both partial products, so the second runs while the first is added.
template <class C>
MOE_DEVICE void multiply_promoted(Ring<C>& ring, int steps, Tile<C>& sum0, Tile<C>& sum1, int group, int warp, int lane) {
#pragma unroll
  for (int i = 0; i < C::kTokenTile / 2; ++i) sum0[i] = sum1[i] = 0.0f;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    barrier_wait(ring.full(), ring.parity);
    const u32 a0 = ring.weights(0) + group * 8192, a1 = ring.weights(1) + group * 8192, b = ring.tokens();
    const u32 scales = ring.scales(), token_scales = scales + C::kTokenScales, empty = ring.empty();
    float w0[2] = {1.0f, 1.0f}, w1[2] = {1.0f, 1.0f};  // of rows l/4 and l/4 + 8
    if constexpr (C::kFineScales) {
      const float2 first = shared_float2(scales + (group * 8 + warp * 2) * 4), second = shared_float2(scales + (16 + group * 8 + warp * 2) * 4);
      w0[0] = first.x, w0[1] = first.y, w1[0] = second.x, w1[1] = second.y;
    } else if constexpr (C::kBlockScales) {
      w0[0] = shared_float(scales + group * 4), w1[0] = shared_float(scales + 8 + group * 4);
    }
    if constexpr (C::kTokenTile <= 96) {
      Tile<C> part0, part1;
      wgmma_pin(part0);
      wgmma_pin(part1);
      wgmma_begin();
      multiply_stage<C>(part0, a0, b, 0);
      wgmma_commit();
      multiply_stage<C>(part1, a1, b, 0);
      wgmma_commit();
      wgmma_wait<1>();
      wgmma_pin(part0);
      promote<C>(sum0, part0, w0, token_scales, lane);
      wgmma_wait<0>();
      wgmma_pin(part1);
      promote<C>(sum1, part1, w1, token_scales, lane);
    } else {
      Tile<C> part;
      wgmma_pin(part);
      wgmma_begin();
      multiply_stage<C>(part, a0, b, 0);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_pin(part);
      promote<C>(sum0, part, w0, token_scales, lane);
      wgmma_pin(part);
      wgmma_begin();
      multiply_stage<C>(part, a1, b, 0);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_pin(part);
      promote<C>(sum1, part, w1, token_scales, lane);
    }
    __syncwarp();  // every lane has read the stage's scales
    if (Ring<C>::releases(lane)) Ring<C>::release(empty);
    ring.advance();
  }
}

// sum += part times the E8M0 scales of the thread's two rows, in byte `unit` of their words, and each
// token's scale.
template <class C>
MOE_DEVICE void promote_mx(Tile<C>& sum, const Tile<C>& part, u32 row0, u32 row1, int unit, u32 token_scales, int lane) {
  const float w0 = e8m0_to_float(row0 >> (8 * unit)), w1 = e8m0_to_float(row1 >> (8 * unit));
#pragma unroll
  for (int j = 0; j < C::kTokenTile / 8; ++j) {
    const float2 t = shared_float2(token_scales + (8 * j + 2 * (lane % 4)) * 4);
    sum[4 * j] = fmaf(part[4 * j] * w0, t.x, sum[4 * j]);
    sum[4 * j + 1] = fmaf(part[4 * j + 1] * w0, t.y, sum[4 * j + 1]);
    sum[4 * j + 2] = fmaf(part[4 * j + 2] * w1, t.x, sum[4 * j + 2]);
    sum[4 * j + 3] = fmaf(part[4 * j + 3] * w1, t.y, sum[4 * j + 3]);
  }
}

// Microscaling: the scales change with every instruction, whose products are added to fp32 sums by
// themselves. One block's instruction runs while the other's products are added.
template <class C>
MOE_DEVICE void multiply_mx(Ring<C>& ring, int steps, Tile<C>& sum0, Tile<C>& sum1, const Place& at) {
#pragma unroll
  for (int i = 0; i < C::kTokenTile / 2; ++i) sum0[i] = sum1[i] = 0.0f;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    barrier_wait(ring.full(), ring.parity);
    const u32 a0 = wgmma_descriptor(ring.weights(0) + at.group * 8192), a1 = wgmma_descriptor(ring.weights(1) + at.group * 8192);
    const u32 b = wgmma_descriptor(ring.tokens()), scales = ring.scales(), empty = ring.empty();
    const uint4 rows = shared_line(ring.weights(0) + kChunkBytes + ((at.group * 4 + at.warp) * 8 + at.lane / 4) * 16);
    Tile<C> part0, part1;
    auto multiply = [&](Tile<C>& part, u32 a, int unit) {
      wgmma_pin(part);
      wgmma_begin();
      Wgmma<C::kTokenTile>::e4m3(part, a + 2 * unit, b + 2 * unit, 0);
      wgmma_commit();
    };
    multiply(part0, a0, 0);
    multiply(part1, a1, 0);
#pragma unroll
    for (int unit = 0; unit < C::kUnits; ++unit) {
      const u32 tokens = scales + unit * C::kTokenTile * 4;
      const bool last = unit == C::kUnits - 1;
      wgmma_wait<1>();
      wgmma_pin(part0);
      promote_mx<C>(sum0, part0, rows.x, rows.y, unit, tokens, at.lane);
      if (!last) multiply(part0, a0, unit + 1);
      if (last) wgmma_wait<0>();
      else wgmma_wait<1>();
      wgmma_pin(part1);
      promote_mx<C>(sum1, part1, rows.z, rows.w, unit, tokens, at.lane);
      if (!last) multiply(part1, a1, unit + 1);
    }
    Ring<C>::release(empty);  // every lane, see Ring
    ring.advance();
  }
}

// Both blocks summed in the tensor core; one stage's products stay in flight.
template <class C, class Sum>
MOE_DEVICE void multiply_plain(Ring<C>& ring, int steps, Sum (&sum0)[C::kTokenTile / 2], Sum (&sum1)[C::kTokenTile / 2], int group,
                               int lane) {
  // Zeroed rather than first written by a product that ignores them: otherwise the
  // registers count as in use from one tile to the next, epilogue included.
#pragma unroll
  for (int i = 0; i < C::kTokenTile / 2; ++i) sum0[i] = sum1[i] = 0;
  u32 previous = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    barrier_wait(ring.full(), ring.parity);
    const u32 a0 = ring.weights(0) + group * 8192, a1 = ring.weights(1) + group * 8192, b = ring.tokens();
    wgmma_pin(sum0);
    wgmma_pin(sum1);
    wgmma_begin();
    multiply_stage<C>(sum0, a0, b, 1);
    multiply_stage<C>(sum1, a1, b, 1);
    wgmma_commit();
    wgmma_wait<1>();
    if (previous != 0 && Ring<C>::releases(lane)) Ring<C>::release(previous);
    previous = ring.empty();
    ring.advance();
  }
  wgmma_wait<0>();
  wgmma_pin(sum0);
  wgmma_pin(sum1);
  if (Ring<C>::releases(lane)) Ring<C>::release(previous);
}

// Sums of integer products are exact until they become floats here.
template <class C>
MOE_DEVICE void multiply_int8(Ring<C>& ring, int steps, Tile<C>& sum0, Tile<C>& sum1, int group, int lane) {
  int exact0[C::kTokenTile / 2], exact1[C::kTokenTile / 2];
  multiply_plain<C>(ring, steps, exact0, exact1, group, lane);
#pragma unroll
  for (int i = 0; i < C::kTokenTile / 2; ++i) sum0[i] = __int2float_rn(exact0[i]), sum1[i] = __int2float_rn(exact1[i]);
}

}  // namespace moe
