// Last kernel of a layer: y[m] = sum over the token's local pairs, in choice
// order, fp32 sum of the bf16 weighted pair outputs, then bf16.
#pragma once
#include "../../device/numeric.h"
#include "config.cuh"

namespace moe {

constexpr int kCombineThreads = 256;

// A block a token; a thread holds up to four vectors of eight columns at once.
template <class C>
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(const __grid_constant__ LayerArgs args) {
  constexpr int kVectors = C::kHidden / 8, kEach = ceil_div(kVectors, kCombineThreads);
  dependency_wait();
  const int token = blockIdx.x;
  int rows[C::kTopK];
#pragma unroll
  for (int t = 0; t < C::kTopK; ++t) rows[t] = __ldcg(&args.pair_row[token * C::kTopK + t]);
  u16* y = args.y + static_cast<i64>(token) * C::kHidden;
  // Many columns and few rows (expert parallelism): columns in flight together;
  // otherwise the rows of one vector are.
  constexpr int kAtOnce = kEach < 4 ? kEach : 4;
  for (int v0 = threadIdx.x; v0 < kVectors; v0 += kCombineThreads * kAtOnce) {
    float sum[kAtOnce][8] = {};
    if constexpr (kAtOnce == 1) {
      uint4 v[C::kTopK];
#pragma unroll
      for (int t = 0; t < C::kTopK; ++t)
        v[t] = rows[t] < 0 ? make_uint4(0, 0, 0, 0)
                           : __ldcs(reinterpret_cast<const uint4*>(args.pair_out + static_cast<i64>(rows[t]) * C::kHidden) + v0);
#pragma unroll
      for (int t = 0; t < C::kTopK; ++t) {
        const u32 w[4] = {v[t].x, v[t].y, v[t].z, v[t].w};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sum[0][2 * e] += bf16_low(w[e]);
          sum[0][2 * e + 1] += bf16_high(w[e]);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < (kAtOnce == 1 ? 0 : C::kTopK); ++t) {
      if (rows[t] < 0) continue;
      const uint4* src = reinterpret_cast<const uint4*>(args.pair_out + static_cast<i64>(rows[t]) * C::kHidden);
      uint4 v[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = v0 + i * kCombineThreads;
        v[i] = at < kVectors ? __ldcs(src + at) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const u32 w[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          sum[i][2 * e] += bf16_low(w[e]);
          sum[i][2 * e + 1] += bf16_high(w[e]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = v0 + i * kCombineThreads;
      if (at < kVectors)
        reinterpret_cast<uint4*>(y)[at] = make_uint4(pack_bf16(sum[i][0], sum[i][1]), pack_bf16(sum[i][2], sum[i][3]),
                                                     pack_bf16(sum[i][4], sum[i][5]), pack_bf16(sum[i][6], sum[i][7]));
    }
  }
}

}  // namespace moe
