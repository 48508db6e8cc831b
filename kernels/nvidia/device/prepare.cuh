// First kernel of a layer: groups pairs by expert, quantises each token once and
// writes it to every row it is routed to, and clears the layer kernel's counters.
#pragma once
#include "kernels/device/align.h"
#include "kernels/nvidia/device/quantise.cuh"

namespace moe {

template <class C>
__global__ void __launch_bounds__(kPrepareThreads) count_kernel(const __grid_constant__ LayerArgs args) {
  __shared__ int counts[C::kExperts];
  dependency_wait();  // what came before: it may have written topk_ids, or still read the workspace
  dependents_launch();
  for (int e = threadIdx.x; e < C::kExperts; e += kPrepareThreads) counts[e] = 0;
  __syncthreads();
  const int pairs = args.tokens * C::kTopK, group = kGroupTokens * C::kTopK;
  const int begin = blockIdx.x * group, end = min(begin + group, pairs);
  count_pairs(args.topk_ids, args.expert_map, begin, end, 0, counts, nullptr, threadIdx.x, kPrepareThreads);
  __syncthreads();
  for (int e = threadIdx.x; e < C::kExperts; e += kPrepareThreads)
    args.group_rows[blockIdx.x * C::kExperts + e] = counts[e];
}

// fp8_tensor: the largest finite magnitude of x, as its bits.
template <class C>
__global__ void __launch_bounds__(kPrepareThreads) amax_kernel(const __grid_constant__ LayerArgs args) {
  dependency_wait();
  dependents_launch();
  const i64 vectors = static_cast<i64>(args.tokens) * (C::kHidden / 8);
  float amax = 0.0f;
  bool finite = true;
  for (i64 i = static_cast<i64>(blockIdx.x) * kPrepareThreads + threadIdx.x; i < vectors; i += static_cast<i64>(gridDim.x) * kPrepareThreads)
    amax = fmaxf(amax, max8<C>(load8(args.x + i * 8), finite));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, d));
  if (threadIdx.x % 32 == 0 && amax > 0.0f) atomicMax(args.tensor_amax, __float_as_uint(amax));
}

// Expert totals and the counts before this block's chunk, in shared memory.
template <class C>
MOE_DEVICE void prepare_counts(const LayerArgs& args, int first_pair, int* counts, int* before) {
  const int thread = threadIdx.x;
  if (args.self_count) {
    count_pairs(args.topk_ids, args.expert_map, 0, args.tokens * C::kTopK, first_pair, counts, before, thread,
                kPrepareThreads);
    return;
  }
  // Pairs of this block's own group ahead of it, then whole groups.
  const int group_pairs = kGroupTokens * C::kTopK, own = first_pair / group_pairs;
  count_pairs(args.topk_ids, args.expert_map, own * group_pairs, first_pair, 0, before, nullptr, thread, kPrepareThreads);
  dependency_wait();  // group_rows comes from count_kernel
  const int groups = (args.tokens + kGroupTokens - 1) / kGroupTokens;
  constexpr int kSplits = C::kExperts <= kPrepareThreads ? kPrepareThreads / C::kExperts : 1;
  const int split = thread / C::kExperts;
  for (int e = thread % C::kExperts; e < C::kExperts && split < kSplits; e += kPrepareThreads) {
    int all = 0, mine = 0;
#pragma unroll 16
    for (int g = split; g < groups; g += kSplits) {
      const int n = __ldcg(&args.group_rows[g * C::kExperts + e]);
      all += n;
      if (g < own) mine += n;
    }
    atomicAdd(&counts[e], all);
    if (mine != 0) atomicAdd(&before[e], mine);
  }
}

// A token's row for one expert, its columns in the order of that expert's weights.
template <class C>
MOE_DEVICE void gather_row(const LayerArgs& args, const u8* token, int expert, int row) {
  const u16* from = reinterpret_cast<const u16*>(token);
  const uint4* order = reinterpret_cast<const uint4*>(args.x_order + static_cast<i64>(expert) * C::kHidden);
  uint4* to = reinterpret_cast<uint4*>(args.x_rows + static_cast<i64>(row) * C::kHidden * 2);
  for (int v = threadIdx.x; v < C::kHidden / 8; v += kPrepareThreads) {
    const uint4 at = order[v];
    auto two = [&](u32 places) { return from[places & 0xffffu] | static_cast<u32>(from[places >> 16]) << 16; };
    to[v] = make_uint4(two(at.x), two(at.y), two(at.z), two(at.w));
  }
}

template <class C>
__global__ void __launch_bounds__(kPrepareThreads) prepare_kernel(const __grid_constant__ LayerArgs args) {
  constexpr int kMaxPairs = 256;  // pairs of a chunk: chunk_tokens * top_k must fit
  constexpr int kVectors = ceil_div(C::kHidden, kPrepareThreads * 8);
  __shared__ int counts[C::kExperts], before[C::kExperts], first_row[C::kExperts + 1];
  __shared__ int chunk_expert[kMaxPairs], chunk_row[kMaxPairs], token_rows[kMaxPairs];
  __shared__ int kept_expert[C::kOrdered ? kMaxPairs : 1];  // of each row in chunk_row
  __shared__ float warp_max[2][8];
  // A row goes to up to top_k places far apart: with many tokens it is made once in
  // shared memory and copied whole, since eight warps each storing its piece of every
  // row cost an address translation apiece. Three, so that one can be written while
  // the two before it are read.
  constexpr int kRowBytes = C::kHidden * C::kElementBytes;
  // (two where three do not fit).
  constexpr int kStaged = 3 * kRowBytes + 3 * (C::kExperts + 1) * 4 + 4 * kMaxPairs * 4 + 256 <= 49152 ? 3 : 2;
  __shared__ alignas(128) u8 staged[kStaged][kRowBytes];
  const bool stage_rows = args.chunk_tokens > 1;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  // The first kernel of a layer waits for all that came before it, and those that follow start only
  // once it has.
  if (args.self_count) dependency_wait();
  dependents_launch();

  const int first_token = blockIdx.x * args.chunk_tokens;
  const int last_token = min(first_token + args.chunk_tokens, args.tokens);
  const int first_pair = first_token * C::kTopK, chunk_pairs = (last_token - first_token) * C::kTopK;
  for (int e = thread; e < C::kExperts; e += kPrepareThreads) counts[e] = before[e] = 0;
  for (int i = blockIdx.x * kPrepareThreads + thread; i < args.counter_words; i += gridDim.x * kPrepareThreads)
    args.counters[i] = 0;
  for (int p = thread; p < chunk_pairs; p += kPrepareThreads)
    chunk_expert[p] = local_expert(args.topk_ids[first_pair + p], args.expert_map);

  // A token's load is in flight while the one before it is written, and the first
  // one's while the pairs are counted.
  Vec8 v[kVectors], ahead[kVectors];
  auto load_token = [&](int token) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int k = (i * kPrepareThreads + thread) * 8;
      if (k < C::kHidden && token < last_token) ahead[i] = load8(args.x + static_cast<i64>(token) * C::kHidden + k);
      else ahead[i] = Vec8{};
    }
  };
  load_token(first_token);
  __syncthreads();
  prepare_counts<C>(args, first_pair, counts, before);
  __syncthreads();
  if (warp == 0) scan_experts(counts, C::kExperts, 1, first_row, nullptr, nullptr, lane);
  __syncthreads();
  if (blockIdx.x == 0)
    for (int e = thread; e < C::kExperts; e += kPrepareThreads) args.expert_rows[e] = counts[e];

  // Rows of the pairs; each token's rows, few under expert parallelism, go to the
  // front of its list. A warp has whole tokens: top_k choices or, if that does not
  // divide 32, one lane a token.
  constexpr int kLanes = 32 % C::kTopK == 0 ? C::kTopK : 1, kEach = C::kTopK / kLanes;
  const int tokens = last_token - first_token;
  for (int base = warp * 32; base < tokens * kLanes; base += kPrepareThreads) {
    const int token = (base + lane) / kLanes, slot = lane % kLanes;
    int kept = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int p = token * C::kTopK + slot + i;
      int row = -1;
      if (token < tokens) {
        const int e = chunk_expert[p];
        if (e >= 0) {
          int rank = 0;
#pragma unroll 8
          for (int q = 0; q < p; ++q) rank += chunk_expert[q] == e;
          row = first_row[e] + before[e] + rank;
          args.row_weight[row] = args.topk_weights[first_pair + p];
          args.row_token[row] = first_token + token;
        }
        args.pair_row[first_pair + p] = row;
      }
      if constexpr (kLanes > 1) {
        const u32 mine = ((kLanes == 32 ? 0u : 1u << kLanes) - 1u) << (lane - slot);
        const u32 present = __ballot_sync(0xffffffffu, row >= 0) & mine;
        kept = __popc(present);
        if (row >= 0) {
          const int to = token * C::kTopK + __popc(present & ((1u << lane) - 1u));
          chunk_row[to] = row;
          if (C::kOrdered) kept_expert[to] = chunk_expert[p];
        }
      } else if (row >= 0) {
        if (C::kOrdered) kept_expert[token * C::kTopK + kept] = chunk_expert[p];
        chunk_row[token * C::kTopK + kept++] = row;
      }
    }
    if (slot == 0 && token < tokens) token_rows[token] = kept;
  }
  __syncthreads();

  int turn = 0;
  for (int token = first_token; token < last_token; ++token) {
    const int* rows = chunk_row + (token - first_token) * C::kTopK;
    const int row_count = token_rows[token - first_token];
#pragma unroll
    for (int i = 0; i < kVectors; ++i) v[i] = ahead[i];
    if (token + 1 < last_token && (C::kDirect || token_rows[token + 1 - first_token] > 0)) load_token(token + 1);
    if (!C::kDirect && row_count == 0) continue;  // the same for all threads
    u8* stage = staged[turn];
    turn = turn == kStaged - 1 ? 0 : turn + 1;
    // Looked at where a maximum is taken anyway.
    bool finite = !C::kTensorGiven && !C::kTensorAmax;
    float token_s = 0.0f;
    if constexpr (C::kTensorGiven) token_s = args.tensor_scale[0];
    if constexpr (C::kTensorAmax) token_s = block_scale(__uint_as_float(__ldcg(args.tensor_amax)));
    if constexpr (C::kChannelScales && !C::kTensorGiven && !C::kTensorAmax) {
      float amax = 0.0f;
#pragma unroll
      for (int i = 0; i < kVectors; ++i) amax = fmaxf(amax, max8<C>(v[i], finite));
#pragma unroll
      for (int d = 16; d > 0; d /= 2) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, d));
      if (lane == 0) warp_max[token & 1][warp] = amax;
      __syncthreads();
#pragma unroll
      for (int w = 0; w < 8; ++w) amax = fmaxf(amax, warp_max[token & 1][w]);
      token_s = row_scale<C>(amax);
    }
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int k = (i * kPrepareThreads + thread) * 8;
      if constexpr (C::kElementBytes == 1) {
        float s = token_s;
        if constexpr (C::kBlockScales) {  // 16 lanes of 8 elements hold a group of 128, 4 one of 32
          float amax = max8<C>(v[i], finite);
#pragma unroll
          for (int d = C::kUnit / 16; d > 0; d /= 2) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, d));
          s = unit_scale<C>(amax);
        }
        if (C::kMx && k >= C::kHidden && k < C::kSteps1 * C::kStep && k % C::kUnit == 0) {
          // Units past the end of K that are multiplied all the same: zeros, by a scale that is finite.
          for (int t = 0; t < row_count; ++t) args.x_scale[static_cast<i64>(k / C::kUnit) * args.row_pitch + rows[t]] = s;
        }
        if (k >= C::kHidden) continue;
        const uint2 q = quantise8<C>(v[i], s, finite);
        if (stage_rows) *reinterpret_cast<uint2*>(stage + k) = q;
#pragma unroll
        for (int t = 0; t < C::kTopK; ++t) {
          if (t >= row_count) break;
          const int row = rows[t];
          if (!stage_rows) *reinterpret_cast<uint2*>(args.x_rows + static_cast<i64>(row) * C::kHidden + k) = q;
          if constexpr (C::kBlockScales) {
            if (k % C::kUnit == 0) args.x_scale[static_cast<i64>(k / C::kUnit) * args.row_pitch + row] = s;
          } else {
            if (k == 0) args.x_scale[row] = s;
          }
        }
      } else {
        if (k >= C::kHidden) continue;
        if (stage_rows || C::kOrdered)
          *reinterpret_cast<uint4*>(stage + k * 2) = make_uint4(v[i].w[0], v[i].w[1], v[i].w[2], v[i].w[3]);
#pragma unroll
        for (int t = 0; t < C::kTopK; ++t) {
          if (stage_rows || C::kOrdered || t >= row_count) break;
          const int row = rows[t];
          *reinterpret_cast<uint4*>(args.x_rows + (static_cast<i64>(row) * C::kHidden + k) * 2) =
              make_uint4(v[i].w[0], v[i].w[1], v[i].w[2], v[i].w[3]);
        }
      }
      // With top_k = 1 nothing else writes the output of a token without a local expert.
      if constexpr (C::kDirect) {
        if (row_count == 0)
          *reinterpret_cast<uint4*>(args.y + static_cast<i64>(token) * C::kHidden + k) = make_uint4(0, 0, 0, 0);
      }
    }
    if constexpr (C::kOrdered) {
      __syncthreads();  // the token is whole
      for (int t = 0; t < row_count; ++t)
        gather_row<C>(args, stage, kept_expert[(token - first_token) * C::kTopK + t], rows[t]);
    } else if (stage_rows) {
      proxy_fence();
      __syncthreads();
      if (warp == 0) {
        if (lane < row_count) bulk_store(args.x_rows + static_cast<i64>(rows[lane]) * kRowBytes, smem_address(stage), kRowBytes);
        bulk_commit();
        bulk_wait_read<kStaged - 2>();
      }
    }
  }
  if (stage_rows && !C::kOrdered && warp == 0) bulk_wait_all();
}

}  // namespace moe
