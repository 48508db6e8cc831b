// The layer kernel: gate/up projection, activation, requantisation and down
// projection of all experts in one persistent launch.
#pragma once
#include "kernels/device/align.h"
#include "kernels/cuda/device/alone.cuh"
#include "kernels/cuda/device/combine.cuh"
#include "kernels/cuda/device/epilogue.cuh"
#include "kernels/cuda/device/integers.cuh"
#include "kernels/cuda/device/parts.cuh"

namespace moe {

// Scale of each accumulator element outside the main loop: a factor for the
// column (token) and, for per-channel weights, one for the row.
template <class C>
MOE_DEVICE void scale_columns(Tile<C>& v, const float* factor, const float (&row_scale)[2], int lane) {
#pragma unroll
  for (int j = 0; j < C::kTokenTile / 8; ++j) {
    const float2 f = *reinterpret_cast<const float2*>(factor + 8 * j + 2 * (lane % 4));
    v[4 * j] *= f.x * row_scale[0];
    v[4 * j + 1] *= f.y * row_scale[0];
    v[4 * j + 2] *= f.x * row_scale[1];
    v[4 * j + 3] *= f.y * row_scale[1];
  }
}

// What the epilogue needs and the main loop's time hides: loaded before it.
template <class C>
struct Prefetched {
  float column = 1.0f;           // of token `thread`
  int token = 0;                 // its row of y
  float channel[2][2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};  // per box, rows l/4 and l/4 + 8
};

template <class C>
MOE_DEVICE void prefetch(const LayerArgs& args, const Segment& s, const Place& at, Prefetched<C>& p, [[maybe_unused]] u8* shared) {
  p.column = 1.0f;
  if constexpr (C::kAlone) {
    const Alone<C> alone(shared);
    const int row = s.phase == 0 ? at.thread < args.tokens && C::kWeightOnInput ? alone.pair_row[at.thread] : -1
                                 : at.thread < s.rows ? s.row + at.thread : -1;
    if (row >= 0 && (s.phase == 0) == C::kWeightOnInput) p.column = alone.row_weight[row];
    if (C::kChannelScales && s.phase == 0 && at.thread < args.tokens) p.column *= alone.scales[at.thread];
    if (C::kDirect && s.phase == 1 && row >= 0) p.token = alone.row_token[row];
  } else {
    if (at.thread < s.rows) {
      const int row = s.row + at.thread;
      if ((s.phase == 0) == C::kWeightOnInput) p.column = __ldcg(&args.row_weight[row]);
      if (C::kChannelScales && s.phase == 0) p.column *= __ldcg(&args.x_scale[row]);
      if (C::kDirect && s.phase == 1) p.token = __ldcg(&args.row_token[row]);
    }
  }
  if constexpr (C::kChannelScales) {
#pragma unroll
    for (int box = 0; box < 2; ++box) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int in_block = at.group * 64 + at.warp * 16 + at.lane / 4 + 8 * i;
        if (s.phase == 0) {
          const int n = min(s.weight_tile * 128 + in_block, C::kInter - 1);
          p.channel[box][i] = args.w13_scale[static_cast<i64>(s.expert) * 2 * C::kInter + box * C::kInter + n];
        } else {
          const int k = min(s.weight_tile * 256 + box * 128 + in_block, C::kHidden - 1);
          p.channel[box][i] = args.w2_scale[static_cast<i64>(s.expert) * C::kHidden + k];
        }
      }
    }
  }
}

// Biases by row of box `box`, then (second projection) the factor of each column.
template <class C>
MOE_DEVICE void add_bias(const LayerArgs& args, const Segment& s, Tile<C>& v, int box, const float* weight, const Place& at) {
  const int first = s.phase == 0 ? s.weight_tile * 128 : s.weight_tile * 256 + box * 128, end = s.phase == 0 ? C::kInter : C::kHidden;
  const float* rows = s.phase == 0 ? args.w13_bias + (static_cast<i64>(s.expert) * 2 + box) * C::kInter
                                   : args.w2_bias + static_cast<i64>(s.expert) * C::kHidden;
  float bias[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) bias[i] = rows[min(first + at.group * 64 + at.warp * 16 + at.lane / 4 + 8 * i, end - 1)];
#pragma unroll
  for (int j = 0; j < C::kTokenTile / 8; ++j) {
    float2 w = make_float2(1.0f, 1.0f);
    if (weight != nullptr) w = *reinterpret_cast<const float2*>(weight + 8 * j + 2 * (at.lane % 4));
    v[4 * j] = (v[4 * j] + bias[0]) * w.x;
    v[4 * j + 1] = (v[4 * j + 1] + bias[0]) * w.y;
    v[4 * j + 2] = (v[4 * j + 2] + bias[1]) * w.x;
    v[4 * j + 3] = (v[4 * j + 3] + bias[1]) * w.y;
  }
}

template <class C>
MOE_DEVICE void finish_tile(const LayerArgs& args, const Segment& s, Tile<C>& sum0, Tile<C>& sum1,
                            const Scratch<C>& scratch, const Place& at, const Prefetched<C>& p, int* shared_flag,
                            int token_tiles, [[maybe_unused]] u8* shared) {
  constexpr bool kGateUpScaled = C::kChannelScales || C::kWeightOnInput;
  constexpr bool kDownScaled = C::kChannelScales || !C::kWeightOnInput;
  if ((s.phase == 0 && kGateUpScaled) || (s.phase == 1 && (kDownScaled || C::kDirect))) {
    sync_math();  // the last tile's readers of these columns are done
    if (at.thread < C::kTokenTile) {
      // With biases the router weight comes after them.
      float factor = C::kBias && s.phase == 1 ? 1.0f : p.column;
      if (C::kChannelScales && s.phase == 1 && at.thread < s.rows) {
        if constexpr (C::kAlone) factor *= Alone<C>(shared).h_scale[at.thread];
        else factor *= __ldcg(&args.h_scale[s.row + at.thread]);
      }
      scratch.column_factor[at.thread] = factor;
      if (C::kBias) scratch.column_inverse[at.thread] = p.column;
      scratch.column_token[at.thread] = p.token;
    }
    sync_math();
    scale_columns<C>(sum0, scratch.column_factor, p.channel[0], at.lane);
    scale_columns<C>(sum1, scratch.column_factor, p.channel[1], at.lane);
  }
  if constexpr (C::kBias) {
    const float* weight = s.phase == 1 ? scratch.column_inverse : nullptr;
    add_bias<C>(args, s, sum0, 0, weight, at);
    add_bias<C>(args, s, sum1, 1, weight, at);
  }
  if (s.phase == 0) {
    auto column_of = [&](int t) {  // of row t of the tile
      if constexpr (C::kAlone) return Alone<C>(shared).row_token[s.row + t];
      else return t;
    };
    if constexpr (C::kBlockScales) finish_gate_up_block<C>(args, s, sum0, sum1, scratch, at, column_of);
    else finish_gate_up_wide<C>(args, s, sum0, sum1, scratch, at, shared_flag, column_of);
  } else {
    finish_down<C>(args, s, sum0, 0, scratch, at);
    finish_down<C>(args, s, sum1, 1, scratch, at);
    if (C::kDirect || args.combined == 0) return;
    sync_math();
    if (at.thread == 0)
      *shared_flag = fetch_add_acq_rel(counters_of<C>(args, s) + args.combined + s.weight_tile, 1) == static_cast<u32>(token_tiles - 1);
    sync_math();
    if (!*shared_flag) return;
    if constexpr (C::kAlone) {
      const int* pair_row = Alone<C>(shared).pair_row;
      combine_columns<C>(args, s.weight_tile, at.thread, [=](int pair) { return pair_row[pair]; });
    } else {
      combine_columns<C>(args, s.weight_tile, at.thread, [&](int pair) { return __ldcg(&args.pair_row[pair]); });
    }
  }
}

template <class C>
MOE_DEVICE void math_loop(const LayerArgs& args, u8* shared, int* shared_flag, int token_tiles, int rows) {
  const Place at(threadIdx.x - kProducerThreads);
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  Scratch<C> scratch(shared + C::kEpilogueOffset);
  Prefetched<C> ahead;
  Tile<C> sum0, sum1;
  [[maybe_unused]] bool quantised = false;
  // No pair is this rank's: no tile will be the last.
  if (!C::kDirect && args.combined != 0 && token_tiles == 0) {
    uint4* y = reinterpret_cast<uint4*>(args.y);
    for (int i = blockIdx.x * kMathThreads + at.thread; i < args.tokens * (C::kHidden / 8); i += gridDim.x * kMathThreads)
      y[i] = make_uint4(0, 0, 0, 0);
  }
  while (true) {
    barrier_wait(queue.full(), queue.parity);
    const Segment& s = queue.segment();  // stays in shared memory until released
    if constexpr (C::kTensorAmax)
      if (s.phase != 0 && !quantised) quantise_tensor<C>(args, rows, at), quantised = true;
    if (s.phase < 0) break;
    prefetch<C>(args, s, at, ahead, shared);
    if (at.thread == 0) MOE_STAMP(args, s.phase == 0 ? 4 : 8);
    if constexpr (C::kAlone) {
      if (s.phase == 0) ring.held = smem_address(Alone<C>(shared).codes) + s.step * C::kTokenBytes;
      else if constexpr (C::kChannelScales) ring.held = make_codes<C>(args, s, shared, at);
    }
    const int steps = s.last_step - s.step;
    if constexpr (C::kIntBits != 0) multiply_integers<C>(ring, steps, C::kAlone && s.phase == 0 ? args.tokens : s.rows, sum0, sum1, at);
    else if constexpr (C::kInt8) multiply_int8<C>(ring, steps, sum0, sum1, at.group, at.lane);
    else if constexpr (C::kMx) multiply_mx<C>(ring, steps, sum0, sum1, at);
    else if constexpr (C::kPromote) multiply_promoted<C>(ring, steps, sum0, sum1, at.group, at.warp, at.lane);
    else multiply_plain<C>(ring, steps, sum0, sum1, at.group, at.lane);
    if (at.thread == 0) MOE_STAMP(args, s.phase == 0 ? 5 : 9);
    ring.held = 0;
    bool whole = true;
    if constexpr (C::kSplit)
      if (s.parts > 1) whole = join_parts<C>(args, s, sum0, sum1, at, shared_flag);
    if (at.thread == 0) MOE_STAMP(args, s.phase == 0 ? 6 : 10);
    if (whole) finish_tile<C>(args, s, sum0, sum1, scratch, place_again(at), ahead, shared_flag, token_tiles, shared);
    if (at.thread == 0) MOE_STAMP(args, s.phase == 0 ? 7 : 11);
    barrier_arrive(queue.empty());
    queue.advance();
  }
}

template <class C>
MOE_DEVICE void math_loop_rows(const LayerArgs& args, u8* shared, int* group_flags, int rows) {
  const Place at(threadIdx.x - kProducerThreads);
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  RowPrefetch ahead;
  RowTile sum0, sum1;
  [[maybe_unused]] bool quantised = false;
  while (true) {
    barrier_wait(queue.full(), queue.parity);
    const Segment& s = queue.segment();
    if constexpr (C::kTensorAmax)
      if (s.phase != 0 && !quantised) quantise_tensor<C>(args, rows, at), quantised = true;
    if (s.phase < 0) break;
    prefetch_rows<C>(args, s, at, ahead);
    const int steps = s.last_step;
    const bool busy = at.group * 64 < s.rows;
    if constexpr (C::kInt8) multiply_rows_int8<C>(ring, steps, sum0, sum1, at, busy);
    else if constexpr (C::kPromote) multiply_rows_promoted<C>(ring, steps, sum0, sum1, at, busy);
    else multiply_rows_plain<C>(ring, steps, sum0, sum1, at, busy);
    finish_rows<C>(args, s, sum0, sum1, shared + C::kEpilogueOffset, place_again(at), ahead, group_flags);
    barrier_arrive(queue.empty());
    queue.advance();
  }
}

// First row and first token tile of every expert, in shared memory.
template <class C>
MOE_DEVICE void make_routing(const LayerArgs& args, int* first_row, int* first_tile, int* first_odd, int* whole, int* parts, int* counts,
                             [[maybe_unused]] int* pair_expert) {
  const int thread = threadIdx.x;
  if constexpr (C::kAlone) {
    count_alone<C>(args, counts, pair_expert);
  } else if (args.self_count) {
    for (int e = thread; e < C::kExperts; e += kLayerThreads) counts[e] = 0;
    __syncthreads();
    count_pairs(args.topk_ids, args.expert_map, 0, args.tokens * C::kTopK, 0, counts, nullptr, thread, kLayerThreads);
  } else {
    dependency_wait();
    for (int e = thread; e < C::kExperts; e += kLayerThreads) counts[e] = __ldcg(&args.expert_rows[e]);
  }
  __syncthreads();
  if (thread < 32) {
    scan_experts(counts, C::kExperts, C::kTokenTile, first_row, first_tile, first_odd, thread);
    __syncwarp();
    if constexpr (C::kSplit) {
      const int phase = thread / 8 % 2;
      const int tiles = first_tile[C::kExperts] * (phase == 0 ? C::kWeightTiles1 : C::kWeightTiles2);
      const int uncut = C::kIntBits != 0 ? tiles / static_cast<int>(gridDim.x) * gridDim.x : 0;
      whole[phase] = uncut;
      parts[phase] = choose_parts(tiles - uncut, phase == 0 ? C::kSteps1 : C::kSteps2, gridDim.x, C::kTokenTile > 16, C::kIntBits != 0, thread);
    }
  }
  __syncthreads();
}

template <class C>
__global__ void __launch_bounds__(kLayerThreads, 1) layer_kernel(const __grid_constant__ LayerArgs args) {
  extern __shared__ u8 shared_raw[];
  const u32 raw = smem_address(shared_raw);
  u8* shared = shared_raw + ((1024 - (raw & 1023)) & 1023);
  const u32 base = smem_address(shared);
  int* first_row = reinterpret_cast<int*>(shared + C::kTableOffset);
  int* first_tile = first_row + C::kExperts + 1;
  int* first_odd = first_tile + C::kExperts + 1;
  int* shared_flag = first_odd + C::kExperts + 1;  // two
  int* whole = shared_flag + 2;                    // two
  int* parts = whole + 2;                          // two
  int* counts = reinterpret_cast<int*>(shared + C::kEpilogueOffset);  // only until the tables are made
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  dependents_launch();

  if (thread == 0) {
    MOE_STAMP(args, 0);
    tensor_prefetch(&args.x_rows_map);
    tensor_prefetch(&args.h_rows_map);
    for (int i = 0; i < C::kStages; ++i) {
      barrier_init(base + C::kBarrierOffset + i * 16, Ring<C>::kFullCount);
      barrier_init(base + C::kBarrierOffset + i * 16 + 8, Ring<C>::kEmptyCount);
      if constexpr (C::kPairs) barrier_init(base + C::kPeerOffset + i * 8, 1);
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(base + C::kMailOffset + i * 16 + 8, 1);
      barrier_init(base + C::kQueueOffset + 128 + i * 16, 1);
      barrier_init(base + C::kQueueOffset + 128 + i * 16 + 8, SegmentQueue<C>::kEmptyCount);
    }
    barrier_init_fence();
  }
  [[maybe_unused]] u32 turn = 0;
  int* pair_expert = nullptr;
  if constexpr (C::kAlone) {
    dependency_wait();  // no kernel of this layer did
    if (warp == 3) turn = load_relaxed(args.turn);
    pair_expert = Alone<C>(shared).pair_expert;
  }
  make_routing<C>(args, first_row, first_tile, first_odd, whole, parts, counts, pair_expert);
  if constexpr (C::kPairs) cluster_sync();  // both blocks' barriers are ready
  const Routing routing{first_row, first_tile, first_odd, whole, parts};

  constexpr bool kLean = C::kTokenRows && C::kPromote;  // sums, a box's products and tokens in registers
  if (thread < kProducerThreads) {
    registers_lower<kLean ? 40 : 56>();
    // The weight warp starts at once; all else needs what prepare wrote.
    if (warp == 0) {
      if (lane == 0) weight_producer<C>(args, shared);
    } else if (warp == 1) {
      dependency_wait();
      if (lane == 0) {
        if constexpr (C::kAlone) token_producer_alone<C>(args, shared);
        else token_producer<C>(args, shared);
      }
    } else if (warp == 2 && C::kBlockScales) {
      dependency_wait();
      if constexpr (C::kAlone) scale_producer_alone<C>(args, shared, lane);
      else scale_producer<C>(args, shared, lane);
    } else if (warp == 3) {
      if constexpr (C::kAlone) clear_other_counters(args, turn, lane);
      if (lane == 0) schedule_producer<C>(args, routing, shared, turn);
    }
  } else {
    registers_raise<kLean ? 232 : 224>();
    dependency_wait();
    if (C::kTensorAmax && blockIdx.x == 0 && thread == kProducerThreads) *args.tensor_amax = 0;  // prepare has read it
    if constexpr (C::kAlone) make_tokens<C>(args, shared, first_row, Place(thread - kProducerThreads));
    if constexpr (C::kTokenRows) math_loop_rows<C>(args, shared, shared_flag, first_row[C::kExperts]);
    else math_loop<C>(args, shared, shared_flag, first_tile[C::kExperts], first_row[C::kExperts]);
  }
  if constexpr (C::kPairs) cluster_sync();  // neither block leaves while the other may arrive here
}

}  // namespace moe
