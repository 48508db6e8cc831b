// Tiles whose K steps were cut into parts, each a unit of its own.
#pragma once
#include "kernels/cuda/device/multiply.cuh"

namespace moe {

// A tile whose K steps were cut: leaves this block's part in memory; true for the
// block that arrives last, whose registers then hold the sum of all parts in order.
template <class C>
MOE_DEVICE bool join_parts(const LayerArgs& args, const Segment& s, Tile<C>& sum0, Tile<C>& sum1, const Place& at,
                           int* shared_flag) {
  constexpr int kVectors = C::kTokenTile / 8;
  float4* parts = reinterpret_cast<float4*>(args.partial) +
                  static_cast<i64>(s.phase * kMaxSplitUnits + s.cut * s.parts) * (2 * kVectors * kMathThreads) + at.thread;
  auto slot = [&](int part) { return parts + static_cast<i64>(part) * (2 * kVectors * kMathThreads); };
  float4* mine = slot(s.part);
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    __stcg(mine + j * kMathThreads, make_float4(sum0[4 * j], sum0[4 * j + 1], sum0[4 * j + 2], sum0[4 * j + 3]));
    __stcg(mine + (kVectors + j) * kMathThreads,
           make_float4(sum1[4 * j], sum1[4 * j + 1], sum1[4 * j + 2], sum1[4 * j + 3]));
  }
  sync_math();
  if (at.thread == 0) {
    u32* arrived = counters_of<C>(args, s) + 3 * args.tile_capacity + s.phase * kMaxSplitUnits;
    *shared_flag = fetch_add_acq_rel(&arrived[s.cut], 1) == static_cast<u32>(s.parts - 1);
  }
  sync_math();
  if (!*shared_flag) return false;
#pragma unroll
  for (int i = 0; i < C::kTokenTile / 2; ++i) sum0[i] = sum1[i] = 0.0f;
  auto add = [&](Tile<C>& sum, const float4& v, int j) {
    sum[4 * j] += v.x, sum[4 * j + 1] += v.y, sum[4 * j + 2] += v.z, sum[4 * j + 3] += v.w;
  };
  constexpr int kAtOnce = C::kTokenTile <= 8 ? 8 : C::kTokenTile <= 16 ? 4 : C::kTokenTile <= 32 ? 2 : 1;
#pragma unroll 1
  for (int part = 0; part < s.parts; part += kAtOnce) {
    float4 v[kAtOnce][2 * kVectors];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (part + i >= s.parts) break;
#pragma unroll
      for (int j = 0; j < 2 * kVectors; ++j) v[i][j] = __ldcg(slot(part + i) + j * kMathThreads);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (part + i >= s.parts) break;
#pragma unroll
      for (int j = 0; j < kVectors; ++j) add(sum0, v[i][j], j), add(sum1, v[i][kVectors + j], j);
    }
  }
  return true;
}

}  // namespace moe
