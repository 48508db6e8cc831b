// The producer warps: weights, tokens and block scales flow through one ring of
// shared-memory stages, each filled by its own warp. The weight warp depends on
// nothing but free stages, so it runs ahead into the next tile, the next expert
// and the next phase while the others wait for their data to be made.
#pragma once
#include "kernels/cuda/device/schedule.cuh"

namespace moe {

template <class C>
struct Ring {
  u32 base;      // shared memory address, 1024-byte aligned
  int stage = 0;
  u32 parity = 0;
  u32 held = 0;  // alone: where the next step's tokens are, if not in the stage

  MOE_DEVICE explicit Ring(u32 base_) : base(base_) {}
  MOE_DEVICE u32 weights(int box) const { return base + stage * C::kStageBytes + box * kBoxBytes; }
  MOE_DEVICE u32 tokens() const {
    if (C::kAlone && held != 0) return held;
    return base + stage * C::kStageBytes + C::kTokenOffset;
  }
  MOE_DEVICE u32 scales() const { return base + C::kScaleOffset + stage * C::kScaleBytes; }
  MOE_DEVICE u32 full() const { return base + C::kBarrierOffset + stage * 16; }
  MOE_DEVICE u32 empty() const { return full() + 8; }
  MOE_DEVICE u32 peer_empty() const { return base + C::kPeerOffset + stage * 8; }
  MOE_DEVICE void advance() {
    if (++stage == C::kStages) stage = 0, parity ^= 1;
    if (C::kAlone && held != 0) held += C::kTokenBytes;
  }
  MOE_DEVICE void advance(int steps) {
    for (int i = 0; i < steps; ++i) advance();
  }
  // Until the stage may be filled, in a pair's other block too if `both`.
  MOE_DEVICE void wait_empty(bool both) const {
    barrier_wait(empty(), parity ^ 1);
    if (C::kPairs && both) barrier_wait(peer_empty(), parity ^ 1);
  }
  // Arrivals that fill a stage: weight copy, token copy and, for block scales, a warp.
  static constexpr u32 kFullCount = 2 + (C::kBlockScales ? 32 : 0);
  // One lane of each math warp releases a stage; with block scales and integer codes, which every
  // lane reads by ordinary loads, every lane.
  static constexpr bool kEveryLane = C::kBlockScales || C::kIntBits != 0;
  static constexpr u32 kEmptyCount = kMathThreads / (kEveryLane ? 1 : 32);
  static MOE_DEVICE bool releases(int lane) { return kEveryLane || lane == 0; }
  static MOE_DEVICE void release(u32 bar) { barrier_arrive(bar); }
};

// Segments from the scheduling warp to all others; one with phase -1 ends the work.
// Two slots: the one being multiplied and the one being loaded.
template <class C>
struct SegmentQueue {
  u8* shared;
  int slot = 0;
  u32 parity = 0;
  // Math threads keep a slot until their tile is done; producers copy it and let go.
  static constexpr u32 kEmptyCount = kMathThreads + 2 + (C::kBlockScales ? 1 : 0);

  MOE_DEVICE explicit SegmentQueue(u8* shared_) : shared(shared_) {}
  MOE_DEVICE Segment& segment() const { return *reinterpret_cast<Segment*>(shared + C::kQueueOffset + slot * 64); }
  MOE_DEVICE u32 full() const { return smem_address(shared) + C::kQueueOffset + 128 + slot * 16; }
  MOE_DEVICE u32 empty() const { return full() + 8; }
  MOE_DEVICE void advance() {
    if (++slot == 2) slot = 0, parity ^= 1;
  }
  // For producers: the next segment, copied. `warp`: called by all 32 lanes.
  MOE_DEVICE bool take(Segment& s, bool warp, int lane) {
    barrier_wait(full(), parity);
    s = segment();
    if (warp) __syncwarp();
    if (!warp || lane == 0) barrier_arrive(empty());
    advance();
    return s.phase >= 0;
  }
};

template <class C>
MOE_DEVICE void schedule_producer(const LayerArgs& args, Routing routing, u8* shared, [[maybe_unused]] u32 set) {
  SegmentQueue<C> queue(shared);
  Schedule<C> schedule(routing);
  int unit = C::kPairs ? blockIdx.x / 2 : blockIdx.x, turn = 1;
  for (bool more = true; more; queue.advance(), ++turn) {
    barrier_wait(queue.empty(), queue.parity ^ 1);
    Segment& s = queue.segment();
    more = schedule.locate(unit, s);
    if constexpr (C::kAlone) s.counters = set * args.counter_words;
    if (!more) s.phase = -1;
    barrier_arrive(queue.full());
    if (!more) break;
    if constexpr (!C::kPairs) {
      unit = next_unit<C>(args, schedule, unit, turn);
    } else {
      // The first block of the pair draws and sends. A word is not overwritten early:
      // to finish the tile two back, the first needed copies made by the second.
      const u32 word = smem_address(shared) + C::kMailOffset + queue.slot * 16, bar = word + 8;
      if (cluster_rank() == 0) {
        unit = next_unit<C>(args, schedule, unit, turn);
        send_word(word, unit, bar, 1);
      } else {
        barrier_arrive_expect(bar, 4);
        barrier_wait(bar, queue.parity);
        unit = *reinterpret_cast<volatile int*>(shared + C::kMailOffset + queue.slot * 16);
      }
    }
  }
  // Every block has read which set of counters this launch has before it knows all its units.
  if constexpr (C::kAlone)
    if (atomicAdd(args.turn + 1, 1u) == gridDim.x - 1) args.turn[1] = 0, args.turn[0] = set ^ 1;
}

template <class C>
MOE_DEVICE void weight_producer(const LayerArgs& args, u8* shared) {
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  Segment s;
  // Read once: evict first, a fifth faster than the default policy. Read by several
  // token tiles (pairs of them): the default, whose lines are still there for the others.
  const u64 once = policy_evict_first(), again = policy_evict_normal();
  MOE_STAMP(args, 1);
  // Weights asked for at once queue in front of prepare's own reads; a few stages
  // keep memory busy until it is done.
  int early = args.early_stages, unused = C::kStages;
  while (queue.take(s, false, 0)) {
    const u64 policy = !C::kSplit && s.token_tiles > (C::kPairs ? 2 : 1) ? again : once;
    const i64 tile = static_cast<i64>(s.expert) * (s.phase == 0 ? C::kWeightTiles1 : C::kWeightTiles2) + s.weight_tile;
    const u8* chunk = (s.phase == 0 ? args.w13_chunks : args.w2_chunks) +
                      (tile * (s.phase == 0 ? C::kSteps1 : C::kSteps2) + s.step) * C::kWeightBytes;
#pragma unroll 1
    for (int step = s.step; step < s.last_step; ++step, chunk += C::kWeightBytes) {
      if (early-- == 0) dependency_wait();
      ring.wait_empty(false);
      // One thread tells the other block for all that released the stage: every arrival at another
      // multiprocessor is a packet. And waits for the other's every time, sharing or not, so that
      // neither block is ever a round of the ring ahead of what the other waits for.
      if (C::kPairs && unused-- <= 0) barrier_arrive_remote(ring.peer_empty(), cluster_rank() ^ 1);
      barrier_arrive_expect(ring.full(), C::kWeightBytes);
      if constexpr (C::kPairs) ring.wait_empty(true);
      if (C::kPairs && s.share_weights) {
        const u32 rank = cluster_rank();
        bulk_load_multicast(ring.weights(rank), chunk + rank * kBoxBytes, kBoxBytes, ring.full(), 3, policy);
      } else {
        bulk_load(ring.weights(0), chunk, C::kWeightBytes, ring.full(), policy);
      }
      ring.advance();
    }
  }
}

// Rows of phase 1 exist once every gate/up tile of their token tile is finished
// (per-token scales: once the row has been quantised).
template <class C>
MOE_DEVICE void wait_for_rows(const LayerArgs& args, const Segment& s) {
  if constexpr (C::kTensorAmax) {  // once every block has quantised its share
    while (load_acquire(&args.counters[args.tensor + 3]) < gridDim.x) {
    }
  } else {
    while (load_acquire(counters_of<C>(args, s) + s.token_tile) < C::kReadyCount) {
    }
  }
}

// Rows of h of a segment whose tokens are wgmma's N, once they are there. One lane.
template <class C>
MOE_DEVICE void load_rows(const LayerArgs& args, const Segment& s, Ring<C>& ring, u64 policy) {
  wait_for_rows<C>(args, s);
  proxy_fence();
  MOE_STAMP(args, 3);
#pragma unroll 1
  for (int step = s.step; step < s.last_step; ++step, ring.advance()) {
    ring.wait_empty(false);
    barrier_arrive_expect(ring.full(), C::kTokenBytes);
#pragma unroll
    for (int box = 0; box < C::kTokenBoxes; ++box)
      tensor_load(ring.tokens() + box * C::kTokenTile * 128, &args.h_rows_map, ring.full(),
                  step * C::kStep + box * (128 / C::kElementBytes), s.row, policy);
  }
}

template <class C>
MOE_DEVICE void token_producer(const LayerArgs& args, u8* shared) {
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  Segment s;
  const u64 policy = C::kTokenRows ? policy_evict_normal() : policy_evict_last();
  MOE_STAMP(args, 2);
  proxy_fence();  // x_rows was written by ordinary stores
  while (queue.take(s, false, 0)) {
    const TensorMap* map = s.phase == 0 ? &args.x_rows_map : &args.h_rows_map;
    if (s.phase == 1) {
      wait_for_rows<C>(args, s);
      proxy_fence();
      MOE_STAMP(args, 3);
    }
#pragma unroll 1
    for (int step = s.step; step < s.last_step; ++step) {
      // A last tile with rows for one warpgroup only: the other's half stays as it is.
      const bool one_box = C::kTokenRows && s.rows <= 64, share_tokens = C::kTokenRows && C::kPairs && !s.share_weights;
      const bool sends = share_tokens && (cluster_rank() == 0 || !one_box);
      ring.wait_empty(sends);
      barrier_arrive_expect(ring.full(), one_box ? C::kTokenBytes / 2 : C::kTokenBytes);
      if constexpr (!C::kTokenRows) {
#pragma unroll
        for (int box = 0; box < C::kTokenBoxes; ++box)
          tensor_load(ring.tokens() + box * C::kTokenTile * 128, map, ring.full(), step * C::kStep + box * (128 / C::kElementBytes),
                      s.row, policy);
      } else if (share_tokens) {
        const u32 rank = cluster_rank();
        if (sends) tensor_load_multicast(ring.tokens() + rank * 8192, map, ring.full(), step * C::kStep, s.row + rank * 64, 3, policy);
      } else {
        tensor_load(ring.tokens(), map, ring.full(), step * C::kStep, s.row, policy);
        if (!one_box) tensor_load(ring.tokens() + 8192, map, ring.full(), step * C::kStep, s.row + 64, policy);
      }
      ring.advance();
    }
  }
}

// Scales over the steps of one group of rows of a weight tile.
template <class C>
MOE_DEVICE const float* weight_scale_row(const LayerArgs& args, const Segment& s, int group) {
  const i64 row = (static_cast<i64>(s.expert) * (s.phase == 0 ? C::kWeightTiles1 : C::kWeightTiles2) + s.weight_tile) * C::kScaleGroups + group;
  return s.phase == 0 ? args.w13_scale + row * C::kScaleCols1 : args.w2_scale + row * C::kScaleCols2;
}

template <class C>
MOE_DEVICE void scale_producer(const LayerArgs& args, u8* shared, int lane) {
  Ring<C> ring(smem_address(shared));
  SegmentQueue<C> queue(shared);
  Segment s;
  while (queue.take(s, true, lane)) {
    if (s.phase == 1) wait_for_rows<C>(args, s);
    [[maybe_unused]] const float* weight = nullptr;
    if constexpr (C::kScaleGroups != 0) weight = weight_scale_row<C>(args, s, lane % C::kScaleGroups);
    const float* token = (s.phase == 0 ? args.x_scale : args.h_scale) + s.row;
    for (int step = s.step; step < s.last_step; ++step) {
      barrier_wait(ring.empty(), ring.parity ^ 1);
      const u32 dst = ring.scales();
      if (lane < C::kScaleGroups) copy_async4(dst + lane * 4, weight + step);
#pragma unroll
      for (int unit = 0; unit < C::kUnits; ++unit) {
        const float* column = token + static_cast<i64>(step * C::kUnits + unit) * args.row_pitch;
#pragma unroll
        for (int t = lane; t < C::kTokenTile; t += 32) copy_async4(dst + C::kTokenScales + (unit * C::kTokenTile + t) * 4, column + t);
      }
      copy_arrive(ring.full());
      ring.advance();
    }
  }
}

}  // namespace moe
