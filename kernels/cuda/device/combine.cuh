// Last kernel of a layer: y[m] = sum over the token's local pairs, in choice
// order, fp32 sum of the bf16 weighted pair outputs, then bf16.
#pragma once
#include "kernels/device/numeric.h"
#include "kernels/cuda/device/config.cuh"

namespace moe {

template <class C>
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(const __grid_constant__ LayerArgs args) {
  constexpr int kVectors = C::kHidden / 8;
  dependency_wait();
  const int index = blockIdx.x * kCombineThreads + threadIdx.x;
  const int token = index / kVectors, k = (index % kVectors) * 8;
  if (token >= args.tokens) return;
  int rows[C::kTopK];
#pragma unroll
  for (int t = 0; t < C::kTopK; ++t) rows[t] = __ldcg(&args.pair_row[token * C::kTopK + t]);
  uint4 v[C::kTopK];
#pragma unroll
  for (int t = 0; t < C::kTopK; ++t)
    v[t] = rows[t] < 0 ? make_uint4(0, 0, 0, 0)
                       : __ldcs(reinterpret_cast<const uint4*>(args.pair_out + static_cast<i64>(rows[t]) * C::kHidden + k));
  float sum[8] = {};
#pragma unroll
  for (int t = 0; t < C::kTopK; ++t) {
    const u32 w[4] = {v[t].x, v[t].y, v[t].z, v[t].w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum[2 * i] += bf16_low(w[i]);
      sum[2 * i + 1] += bf16_high(w[i]);
    }
  }
  *reinterpret_cast<uint4*>(args.y + static_cast<i64>(token) * C::kHidden + k) =
      make_uint4(pack_bf16(sum[0], sum[1]), pack_bf16(sum[2], sum[3]), pack_bf16(sum[4], sum[5]),
                 pack_bf16(sum[6], sum[7]));
}

}  // namespace moe
