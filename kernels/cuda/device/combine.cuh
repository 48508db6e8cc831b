// Last kernel of a layer: y[m] = sum over the token's local pairs, in choice
// order, fp32 sum of the weighted pair outputs in 16 bits, then 16 bits.
#pragma once
#include "kernels/nvidia/device/config.cuh"

namespace moe {

template <class C>
MOE_DEVICE void add_eight(float (&sum)[8], const uint4& v) {
  const u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    sum[2 * e] += C::H::low(w[e]);
    sum[2 * e + 1] += C::H::high(w[e]);
  }
}
template <class C>
MOE_DEVICE uint4 pack_eight(const float (&s)[8]) {
  return make_uint4(C::H::pack(s[0], s[1]), C::H::pack(s[2], s[3]), C::H::pack(s[4], s[5]), C::H::pack(s[6], s[7]));
}

// Few pairs: the block that finishes the last of the down projection's tiles of 256 columns sums them
// for every token, and no kernel is launched for it. All math threads.
template <class C, class RowOf>
MOE_DEVICE void combine_columns(const LayerArgs& args, int weight_tile, int thread, RowOf row_of) {
  const int column = weight_tile * 256 + thread % 32 * 8;
  if (column >= C::kHidden) return;
  for (int token = thread / 32; token < args.tokens; token += kMathThreads / 32) {
    uint4 v[C::kTopK];
#pragma unroll
    for (int t = 0; t < C::kTopK; ++t) {
      const int row = row_of(token * C::kTopK + t);
      v[t] = row < 0 ? make_uint4(0, 0, 0, 0)
                     : __ldcg(reinterpret_cast<const uint4*>(args.pair_out + static_cast<i64>(row) * C::kHidden + column));
    }
    float sum[8] = {};
#pragma unroll
    for (int t = 0; t < C::kTopK; ++t) add_eight<C>(sum, v[t]);
    *reinterpret_cast<uint4*>(args.y + static_cast<i64>(token) * C::kHidden + column) = pack_eight<C>(sum);
  }
}

// With many tokens a token's rows are far apart in memory: each is fetched whole by
// the copy engine, one address translation instead of one for every warp.
template <class C>
MOE_DEVICE void combine_staged(const LayerArgs& args, int token, const int (&rows)[C::kTopK]) {
  constexpr int kVectors = C::kHidden / 8;
  __shared__ alignas(128) u8 staged[C::kTopK][C::kHidden * 2];
  __shared__ alignas(8) u64 barrier;
  const u32 bar = smem_address(&barrier);
  if (threadIdx.x == 0) {
    barrier_init(bar, 1);
    barrier_init_fence();
    int count = 0;
#pragma unroll
    for (int t = 0; t < C::kTopK; ++t) count += rows[t] >= 0;
    barrier_arrive_expect(bar, count * C::kHidden * 2);
#pragma unroll
    for (int t = 0; t < C::kTopK; ++t)
      if (rows[t] >= 0)
        bulk_load(smem_address(staged[t]), args.pair_out + static_cast<i64>(rows[t]) * C::kHidden, C::kHidden * 2, bar);
  }
  __syncthreads();
  barrier_wait(bar, 0);
  for (int v = threadIdx.x; v < kVectors; v += kCombineThreads) {
    float sum[8] = {};
#pragma unroll
    for (int t = 0; t < C::kTopK; ++t)
      if (rows[t] >= 0) add_eight<C>(sum, reinterpret_cast<const uint4*>(staged[t])[v]);
    reinterpret_cast<uint4*>(args.y + static_cast<i64>(token) * C::kHidden)[v] = pack_eight<C>(sum);
  }
}

// A block a token; a thread holds up to four vectors of eight columns at once.
template <class C>
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(const __grid_constant__ LayerArgs args) {
  constexpr int kVectors = C::kHidden / 8, kEach = ceil_div(kVectors, kCombineThreads);
  dependents_launch();
  dependency_wait();
  const int token = blockIdx.x;
  int rows[C::kTopK];
#pragma unroll
  for (int t = 0; t < C::kTopK; ++t) rows[t] = __ldcg(&args.pair_row[token * C::kTopK + t]);
  if constexpr (C::kTopK * C::kHidden * 2 <= 40960) {
    if (args.chunk_tokens > 1) {
      combine_staged<C>(args, token, rows);
      return;
    }
  }
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
      for (int t = 0; t < C::kTopK; ++t) add_eight<C>(sum[0], v[t]);
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
      for (int i = 0; i < kAtOnce; ++i) add_eight<C>(sum[i], v[i]);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (v0 + i * kCombineThreads < kVectors) reinterpret_cast<uint4*>(y)[v0 + i * kCombineThreads] = pack_eight<C>(sum[i]);
  }
}

}  // namespace moe
