// Which tiles a block works on. Phase 0 is gate/up, phase 1 the down projection.
// Tiles are ordered expert, weight tile, token tile, so that blocks working next
// to each other share weights. Two ways to deal them out:
//  split (kSplit): the K steps of all tiles of a phase form one line that is cut into
//    equal parts, one a block; a tile cut in two or more is summed by whichever of
//    its blocks arrives last. Every block streams the same number of bytes.
//  in turn: block b takes tiles b, b + blocks, ...; for many tokens an expert.
// The order in both phases is the same, so the rows that a block needs in phase 1
// were made at about the same time as its own last tile of phase 0.
#pragma once
#include "config.cuh"

namespace moe {

struct Segment {
  int phase, expert, weight_tile, token_tile;  // token_tile counts over all experts
  int row, rows;                               // first row of the tile and rows in it
  int step, last_step;                         // K steps [step, last_step)
  int tile;                                    // within the phase
  int first;                                   // 1: the block's first segment of the phase
  int sharers;                                 // token tiles that read the same weights
};

static_assert(sizeof(Segment) <= 64, "a queue slot holds a segment");

// Tables every role of the block reads.
struct Routing {
  const int* first_row;
  const int* first_tile;
};

template <class C>
struct Schedule {
  Routing routing;
  int phase = -1, expert = 0;
  int position = 0, end = 0, begin = 0;

  MOE_DEVICE explicit Schedule(Routing r) : routing(r) {}

  static MOE_DEVICE int steps(int phase) { return phase == 0 ? C::kSteps1 : C::kSteps2; }
  static MOE_DEVICE int weight_tiles(int phase) { return phase == 0 ? C::kWeightTiles1 : C::kWeightTiles2; }
  MOE_DEVICE int phase_tiles(int p) const { return routing.first_tile[C::kExperts] * weight_tiles(p); }

  // Blocks that take part: no part shorter than two steps.
  MOE_DEVICE int active(int p) const {
    const int parts = phase_tiles(p) * steps(p) / 2;
    return parts < 1 ? 1 : min(parts, static_cast<int>(gridDim.x));
  }
  MOE_DEVICE int part_begin(int p, int part) const {
    return static_cast<int>(static_cast<i64>(phase_tiles(p)) * steps(p) * part / active(p));
  }
  // The block whose part holds step i: the last part that begins at or before i.
  MOE_DEVICE int part_of(int p, int i) const {
    const i64 line = static_cast<i64>(phase_tiles(p)) * steps(p);
    return static_cast<int>(((static_cast<i64>(i) + 1) * active(p) - 1) / line);
  }

  MOE_DEVICE void enter_phase(int p) {
    phase = p;
    expert = 0;
    const int tiles = phase_tiles(p), block = blockIdx.x;
    if constexpr (C::kSplit) {
      const bool taking_part = block < active(p) && tiles > 0;
      begin = position = taking_part ? part_begin(p, block) : 0;
      end = taking_part ? part_begin(p, block + 1) : 0;
    } else {
      begin = position = block;
      end = tiles;
    }
  }

  MOE_DEVICE bool next(Segment& s) {
    while (phase < 0 || position >= end) {
      if (phase == 1) return false;
      enter_phase(phase + 1);
    }
    const int n = steps(phase), wide = weight_tiles(phase);
    s.phase = phase;
    s.first = position == begin;
    if constexpr (C::kSplit) {
      s.tile = position / n;
      s.step = position - s.tile * n;
      s.last_step = min(n, s.step + end - position);
      position += s.last_step - s.step;
    } else {
      s.tile = position;
      s.step = 0;
      s.last_step = n;
      position += gridDim.x;
    }
    while (s.tile >= routing.first_tile[expert + 1] * wide) ++expert;
    const int base = routing.first_tile[expert];
    const int inside = s.tile - base * wide;
    s.sharers = routing.first_tile[expert + 1] - base;
    s.expert = expert;
    s.weight_tile = inside / s.sharers;
    const int t = inside - s.weight_tile * s.sharers;
    s.token_tile = base + t;
    s.row = routing.first_row[expert] + t * C::kTokenTile;
    s.rows = min(C::kTokenTile, routing.first_row[expert + 1] - s.row);
    return true;
  }
};

}  // namespace moe
