// Grouping of pairs by expert: which row a pair is, and which expert and rows a token tile is.
#pragma once
#include "kernels/hip/device/config.h"
#include "kernels/hip/device/shared.h"

namespace moe {

struct CountShared {
  int counts[kMaxExperts];
};

// Only where there is more than one chunk: how many pairs of each chunk go to each expert.
MOE_DEVICE void count_pairs_of_chunk(const LayerArgs& args) {
  MOE_LDS(CountShared, lds);
  const int thread = gpu::thread(), chunk = gpu::block();
  for (int e = thread; e < args.experts; e += kPrepareThreads) lds.counts[e] = 0;
  gpu::sync();
  const int begin = chunk * kChunkTokens * args.top_k;
  count_pairs(args.topk_ids, args.expert_map, begin,
              min(begin + kChunkTokens * args.top_k, args.pairs), 0, lds.counts, nullptr, thread,
              kPrepareThreads);
  gpu::sync();
  for (int e = thread; e < args.experts; e += kPrepareThreads)
    args.chunk_counts[chunk * args.experts + e] = lds.counts[e];
}

struct GroupShared {
  int counts[kMaxExperts], before[kMaxExperts];  // of all chunks, of those before this one
  int first_row[kMaxExperts + 1], first_tile[kMaxExperts + 1];
  int expert[kChunkTokens * kMaxTopK];  // of each pair of the chunk, -1 where it is not local
};

MOE_DEVICE void fill_tile_tables(const LayerArgs& args, const GroupShared& lds, int thread) {
  for (int e = thread; e <= args.experts; e += kPrepareThreads)
    args.first_row[e] = lds.first_row[e];
  for (int e = thread; e < args.experts; e += kPrepareThreads) {
    for (int t = lds.first_tile[e]; t < lds.first_tile[e + 1]; ++t) {
      args.tile_expert[t] = e;
      args.tile_row[t] = lds.first_row[e] + (t - lds.first_tile[e]) * args.tile_tokens;
    }
  }
  if (thread == 0) *args.tile_count = lds.first_tile[args.experts];
  if (thread < 2) args.amax[thread] = 0;
}

// A block for each chunk. kLanes: of a wave.
template <int kLanes>
MOE_DEVICE void group_pairs(const LayerArgs& args) {
  MOE_LDS(GroupShared, lds);
  const int thread = gpu::thread(), chunk = gpu::block(), experts = args.experts;
  const int chunks = (args.tokens + kChunkTokens - 1) / kChunkTokens;
  const int begin = chunk * kChunkTokens * args.top_k,
            end = min(begin + kChunkTokens * args.top_k, args.pairs);
  for (int e = thread; e < experts; e += kPrepareThreads) lds.counts[e] = lds.before[e] = 0;
  for (int p = begin + thread; p < end; p += kPrepareThreads)
    lds.expert[p - begin] = local_expert(args.topk_ids[p], args.expert_map);
  gpu::sync();
  if (chunks == 1) {
    count_pairs(args.topk_ids, args.expert_map, 0, args.pairs, 0, lds.counts, nullptr, thread,
                kPrepareThreads);
  } else {
    for (int e = thread; e < experts; e += kPrepareThreads) {
      int all = 0, before = 0;
#pragma unroll 8
      for (int c = 0; c < chunks; ++c) {
        const int n = args.chunk_counts[c * experts + e];
        all += n;
        before += c < chunk ? n : 0;
      }
      lds.counts[e] = all;
      lds.before[e] = before;
    }
  }
  gpu::sync();
  // A whole wave, because lanes that are not there cannot be asked; each 32 lanes find the same.
  if (thread < kLanes) {
    scan_experts(lds.counts, experts, args.tile_tokens, lds.first_row, lds.first_tile, nullptr,
                 thread % 32);
  }
  gpu::sync();
  if (chunk == 0) fill_tile_tables(args, lds, thread);
  for (int p = begin + thread; p < end; p += kPrepareThreads) {
    const int e = lds.expert[p - begin];
    int row = -1;
    if (e >= 0) {
      row = lds.first_row[e] + lds.before[e];
      for (int q = 0; q < p - begin; ++q) row += lds.expert[q] == e;
      args.row_token[row] = p / args.top_k;
      args.row_weight[row] = args.topk_weights[p];
    }
    args.pair_row[p] = row;
  }
}

}  // namespace moe
