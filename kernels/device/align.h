// Grouping (token, choice) pairs by expert. Pair p is token p / top_k. A pair
// counts when its id is not -1 and, under expert parallelism, its expert is local.
// Rows of one expert are contiguous and in pair order, so the result does not
// depend on timing.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

MOE_DEVICE int shuffle_up(int value, int distance) {
#if MOE_HIP
  return __shfl_up(value, distance, 32);
#else
  return __shfl_up_sync(0xffffffffu, value, distance);
#endif
}
MOE_DEVICE int shuffle_index(int value, int lane) {
#if MOE_HIP
  return __shfl(value, lane, 32);
#else
  return __shfl_sync(0xffffffffu, value, lane);
#endif
}

// Local expert of a routed id, or -1 when the pair contributes nothing here.
MOE_DEVICE int local_expert(int id, const int* expert_map) {
  if (id < 0) return -1;
  return expert_map == nullptr ? id : expert_map[id];
}

// Adds pairs [begin, end) to per-expert counts in shared memory; pairs before
// `split` also count in `before` when it is given. Called by all threads.
MOE_DEVICE void count_pairs(const int* ids, const int* expert_map, int begin, int end, int split,
                            int* counts, int* before, int thread, int threads) {
  for (int p = begin + thread; p < end; p += threads) {
    const int e = local_expert(ids[p], expert_map);
    if (e < 0) continue;
    atomicAdd(&counts[e], 1);
    if (before != nullptr && p < split) atomicAdd(&before[e], 1);
  }
}

// Exclusive prefix sums by one group of 32 lanes: first row of every expert and,
// for row tiles of `tile`, its first tile and the experts before it with an odd
// number of tiles. Tables that are not null have experts + 1 entries.
MOE_DEVICE void scan_experts(const int* counts, int experts, int tile, int* first_row,
                             int* first_tile, int* first_odd, int lane) {
  // A lane has its experts in a row, so that lanes meet once.
  const int each = (experts + 31) / 32, begin = lane * each;
  const int end = begin + each < experts ? begin + each : experts;
  int rows = 0, tiles = 0, odds = 0;
  for (int e = begin; e < end; ++e) {
    const int own_tiles = (counts[e] + tile - 1) / tile;
    rows += counts[e], tiles += own_tiles, odds += own_tiles & 1;
  }
  int r = rows, t = tiles, o = odds;
  for (int d = 1; d < 32; d *= 2) {
    const int r_left = shuffle_up(r, d), t_left = shuffle_up(t, d), o_left = shuffle_up(o, d);
    if (lane >= d) r += r_left, t += t_left, o += o_left;
  }
  int row = r - rows, first = t - tiles, odd = o - odds;
  for (int e = begin; e < end; ++e) {
    const int own_tiles = (counts[e] + tile - 1) / tile;
    first_row[e] = row;
    if (first_tile != nullptr) first_tile[e] = first;
    if (first_odd != nullptr) first_odd[e] = odd;
    row += counts[e], first += own_tiles, odd += own_tiles & 1;
  }
  rows = shuffle_index(r, 31), tiles = shuffle_index(t, 31), odds = shuffle_index(o, 31);
  if (lane == 0) {
    first_row[experts] = rows;
    if (first_tile != nullptr) first_tile[experts] = tiles;
    if (first_odd != nullptr) first_odd[experts] = odds;
  }
}

}  // namespace moe
