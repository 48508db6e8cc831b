// Few pairs: the layer kernel is the whole layer. Every block groups the pairs and makes the tokens' codes
// for itself, in shared memory: no kernel before it, whose launch, stores and end a batch of one would
// mostly be waiting for, and weights are asked for as soon as the experts are known.
// Nobody clears the counters beforehand: there are two sets, a launch uses one and clears the other.
#pragma once
#include "kernels/device/align.h"
#include "kernels/nvidia/device/quantise.cuh"
#include "kernels/cuda/device/token_rows.cuh"

namespace moe {

template <class C>
struct Alone {
  int *pair_expert, *pair_row, *row_token;
  float *row_weight, *warp_max;
  float* h_scale;  // of the rows of h in `h_codes`
  float* scales;   // of x: [unit of K or 1][kAloneMost]
  // As they are multiplied, [128 bytes of K (or N)][kTokenTile] of 128 bytes, swizzled: tokens, a tile's rows of h.
  u8 *codes, *h_codes;
  MOE_DEVICE explicit Alone(u8* shared) {
    h_codes = shared + C::kAloneOffset;
    codes = h_codes + C::kAloneWide;
    pair_expert = reinterpret_cast<int*>(codes + C::kAloneX);
    pair_row = pair_expert + kInsidePairs;
    row_token = pair_row + kInsidePairs;
    row_weight = reinterpret_cast<float*>(row_token + kInsidePairs);
    warp_max = row_weight + kInsidePairs;  // two rounds of 8 warps
    h_scale = warp_max + 16;
    scales = h_scale + C::kTokenTile;
  }
  // Of byte `at` of a token or row.
  static MOE_DEVICE u8* place(u8* of, int row, int at) {
    return of + at / 128 * (C::kTokenTile * 128) + row * 128 + ((at / 16 % 8 ^ (row & 7)) << 4) + at % 16;
  }
};

// Barrier 4: math warps, and the scale warp, once the tables and tokens are there.
template <class C>
MOE_DEVICE void sync_tokens() {
  sync_threads(4, kMathThreads + (C::kBlockScales ? 32 : 0));
}

// Experts of the pairs and how many each has. All threads.
template <class C>
MOE_DEVICE void count_alone(const LayerArgs& args, int* counts, int* pair_expert) {
  const int thread = threadIdx.x;
  int expert = -1;
  if (thread < args.tokens * C::kTopK) expert = local_expert(args.topk_ids[thread], args.expert_map);
  for (int e = thread; e < C::kExperts; e += kLayerThreads) counts[e] = 0;
  __syncthreads();
  if (thread < kInsidePairs) pair_expert[thread] = expert;
  if (expert >= 0) atomicAdd(&counts[expert], 1);
}

// Of the launch after this one. A warp of every block.
MOE_DEVICE void clear_other_counters(const LayerArgs& args, u32 set, int lane) {
  u32* other = args.counters + (set ^ 1) * args.counter_words;
  for (int i = blockIdx.x * 32 + lane; i < args.counter_words; i += gridDim.x * 32) other[i] = 0;
}

// The row of every pair, in pair order within an expert as prepare has them.
template <class C>
MOE_DEVICE void place_pairs(const LayerArgs& args, const Alone<C>& alone, const int* first_row, int pair) {
  if (pair >= args.tokens * C::kTopK) return;
  const float weight = args.topk_weights[pair];
  const int expert = alone.pair_expert[pair];
  int row = -1;
  if (expert >= 0) {
    row = first_row[expert];
    for (int q = 0; q < pair; ++q) row += alone.pair_expert[q] == expert;
    alone.row_token[row] = pair / C::kTopK;
    alone.row_weight[row] = weight;
  }
  alone.pair_row[pair] = row;
}

template <class C>
MOE_DEVICE void make_token(const LayerArgs& args, const Alone<C>& alone, const Place& at, int token, const Vec8* v) {
  constexpr int kVectors = ceil_div(C::kHidden, kMathThreads * 8);
  constexpr bool kMeasured = C::kChannelScales && !C::kTensorGiven;
  bool finite = false;  // unused: one way of dividing for all, since this code runs once
  float token_s = 0.0f;
  if constexpr (C::kTensorGiven) token_s = args.tensor_scale[0];
  if constexpr (kMeasured) {
    float amax = 0.0f;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) amax = fmaxf(amax, max8<C>(v[i], finite));
    amax = warp_maximum(amax);
    float* maxima = alone.warp_max + (token & 1) * 8;
    if (at.lane == 0) maxima[at.thread / 32] = amax;
    sync_math();
#pragma unroll
    for (int w = 0; w < 8; ++w) amax = fmaxf(amax, maxima[w]);
    token_s = row_scale<C>(amax);
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int k = (i * kMathThreads + at.thread) * 8;
    if constexpr (C::kElementBytes == 1) {
      float s = token_s;
      if constexpr (C::kBlockScales) {  // 16 lanes of 8 elements hold a group of 128, 4 one of 32
        float amax = max8<C>(v[i], finite);
#pragma unroll
        for (int d = C::kUnit / 16; d > 0; d /= 2) amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, d));
        s = unit_scale<C>(amax);
        // Units past the end of K too: they are multiplied all the same.
        if (k % C::kUnit == 0 && k < C::kSteps1 * C::kStep) alone.scales[k / C::kUnit * C::kAloneMost + token] = s;
      } else {
        if (k == 0) alone.scales[token] = s;
      }
      if (k < C::kSteps1 * C::kStep) *reinterpret_cast<uint2*>(alone.place(alone.codes, token, k)) = quantise8<C>(v[i], s, false);
    } else {
      if (k < C::kSteps1 * C::kStep)
        *reinterpret_cast<uint4*>(alone.place(alone.codes, token, k * 2)) = make_uint4(v[i].w[0], v[i].w[1], v[i].w[2], v[i].w[3]);
    }
  }
}

// Tables and tokens. All math threads; several tokens' loads are in flight together.
template <class C>
MOE_DEVICE void make_tokens(const LayerArgs& args, u8* shared, const int* first_row, const Place& at) {
  constexpr int kVectors = ceil_div(C::kHidden, kMathThreads * 8), kAtOnce = kVectors < 8 ? 8 / kVectors : 1;
  const Alone<C> alone(shared);
#pragma unroll 1
  for (int first = 0; first < args.tokens; first += kAtOnce) {
    Vec8 v[kAtOnce][kVectors];
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t) {
#pragma unroll
      for (int i = 0; i < kVectors; ++i) {
        const int k = (i * kMathThreads + at.thread) * 8;
        v[t][i] = Vec8{};
        if (k < C::kHidden && first + t < args.tokens) v[t][i] = load8(args.x + static_cast<i64>(first + t) * C::kHidden + k);
      }
    }
    if (first == 0) place_pairs<C>(args, alone, first_row, at.thread);
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t)
      if (first + t < args.tokens) make_token<C>(args, alone, at, first + t, v[t]);
  }
  proxy_fence_shared();  // wgmma reads them by another way
  sync_tokens<C>();
  if constexpr (C::kDirect) {  // nothing else writes the output of a token without a local expert
    for (int token = blockIdx.x; token < args.tokens; token += gridDim.x) {
      if (alone.pair_row[token] >= 0) continue;
      for (int k = at.thread * 8; k < C::kHidden; k += kMathThreads * 8)
        *reinterpret_cast<uint4*>(args.y + static_cast<i64>(token) * C::kHidden + k) = make_uint4(0, 0, 0, 0);
    }
  }
}

// One scale a row of h: every block that multiplies a token tile makes the codes of its rows for itself, once
// all N columns are in memory. Otherwise one block would make them for all, and all wait for two more
// exchanges through memory. They are written as they will be multiplied, no stage holds them. All math
// threads, a warp a row. Returns where the segment's first step is.
template <class C>
MOE_DEVICE u32 make_codes(const LayerArgs& args, const Segment& s, u8* shared, const Place& at) {
  const Alone<C> alone(shared);
  if (at.thread == 0)
    while (load_acquire(counters_of<C>(args, s) + s.token_tile) < C::kWeightTiles1) {
    }
  sync_math();  // all know it, and have multiplied the codes of the tile before
  quantise_wide_rows<C>(
      args, s.row + at.thread / 32, s.row + s.rows, 8, at.lane, C::kTensorGiven ? args.tensor_scale[1] : 0.0f,
      [&](int row, int n) { return alone.place(alone.h_codes, row - s.row, n); }, [&](int row) { return alone.h_scale + row - s.row; });
  if constexpr (C::kInter % 128 != 0) {  // columns past the end are multiplied too, by weights of zero
    constexpr int kPast = (128 - C::kInter % 128) / 16;
    for (int i = at.thread; i < s.rows * kPast; i += kMathThreads)
      *reinterpret_cast<uint4*>(alone.place(alone.h_codes, i / kPast, C::kInter + i % kPast * 16)) = make_uint4(0, 0, 0, 0);
  }
  proxy_fence_shared();  // wgmma reads them by another way
  sync_math();
  return smem_address(alone.h_codes) + s.step * C::kTokenBytes;
}

// As token_producer. What the block has made for itself no stage has to hold. One lane.
template <class C>
MOE_DEVICE void token_producer_alone(const LayerArgs& args, u8* shared) {
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  const u64 policy = policy_evict_last();
  Segment s;
  MOE_STAMP(args, 2);
  while (queue.take(s, false, 0)) {
    if (!C::kChannelScales && s.phase == 1) {
      load_rows<C>(args, s, ring, policy);
      continue;
    }
#pragma unroll 1
    for (int step = s.step; step < s.last_step; ++step, ring.advance()) {
      ring.wait_empty(false);
      barrier_arrive(ring.full());
    }
  }
}

// As scale_producer, tokens' scales of the first projection from this block's own shared memory.
template <class C>
MOE_DEVICE void scale_producer_alone(const LayerArgs& args, u8* shared, int lane) {
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  const Alone<C> alone(shared);
  Segment s;
  sync_tokens<C>();
  while (queue.take(s, true, lane)) {
    if (s.phase == 1) wait_for_rows<C>(args, s);
    [[maybe_unused]] const float* weight = nullptr;
    if constexpr (C::kScaleGroups != 0) weight = weight_scale_row<C>(args, s, lane % C::kScaleGroups);
    const int token = lane < args.tokens ? lane : 0;
    for (int step = s.step; step < s.last_step; ++step) {
      barrier_wait(ring.empty(), ring.parity ^ 1);
      const u32 dst = ring.scales();
      if (lane < C::kScaleGroups) copy_async4(dst + lane * 4, weight + step);
      if (lane < C::kTokenTile) {
#pragma unroll
        for (int unit = 0; unit < C::kUnits; ++unit) {
          const u32 to = dst + C::kTokenScales + (unit * C::kTokenTile + lane) * 4;
          if (s.phase == 1) copy_async4(to, args.h_scale + s.row + static_cast<i64>(step * C::kUnits + unit) * args.row_pitch + lane);
          else store_shared(to, alone.scales[(step * C::kUnits + unit) * C::kAloneMost + token]);
        }
      }
      if (s.phase == 0) __threadfence_block();  // the stores, before the arrival that follows copies
      copy_arrive(ring.full());
      ring.advance();
    }
  }
}

}  // namespace moe
