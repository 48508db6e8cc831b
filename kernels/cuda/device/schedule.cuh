// Which tiles a block works on. Phase 0 is gate/up, phase 1 the down projection.
// Tiles are ordered expert, weight tile, token tile, so that blocks working next
// to each other share weights, and dealt in turn: block b takes units b, b + blocks,
// and so on. The order in both phases is the same, so the rows that a block needs in
// phase 1 were made at about the time of its own last tile of phase 0.
//  split (kSplit, few tokens): where tiles alone would leave multiprocessors idle, a
//    tile's K steps are cut into parts, each a unit; the block that arrives last sums
//    them. The number of parts is chosen on the device from the number of tiles.
//  pairs (kPairs): dealt to clusters of two blocks. An expert's token tiles are taken
//    two at a time, the blocks sharing the weights; a token tile left over meets two
//    weight tiles at a time, the blocks sharing the tokens.
#pragma once
#include "kernels/cuda/device/config.cuh"

namespace moe {

struct Segment {
  int phase, expert, weight_tile, token_tile;  // token_tile counts over all experts
  int row, rows;                               // first row of the tile and rows in it
  int step, last_step;                         // K steps [step, last_step)
  int tile;                                    // within the phase
  int part, parts;                             // of the tile's K steps
  int share_weights;                           // pairs: 1 weights, 0 tokens are read for both blocks
};

static_assert(sizeof(Segment) <= 64, "a queue slot holds a segment");

// Tables every role of the block reads.
struct Routing {
  const int* first_row;
  const int* first_tile;
  const int* first_odd;  // experts before with an odd number of token tiles
  const int* parts;      // of a tile, in each phase
};

// Parts that finish soonest: rounds of units times steps a unit, a cut costing about
// two steps' time for the exchange of partial sums.
MOE_DEVICE int choose_parts(int tiles, int steps, int blocks) {
  int best = 1, best_cost = ceil_div(tiles, blocks) * steps;
  for (int p = 2; p <= 8 && tiles * p <= kMaxSplitUnits && steps >= 2 * p; ++p) {
    const int cost = ceil_div(tiles * p, blocks) * (ceil_div(steps, p) + 2);
    if (cost < best_cost) best = p, best_cost = cost;
  }
  return best;
}

template <class C>
struct Schedule {
  Routing routing;
  int phase = -1, expert = 0, position = 0, end = 0;

  MOE_DEVICE explicit Schedule(Routing r) : routing(r) {}

  static MOE_DEVICE int steps(int phase) { return phase == 0 ? C::kSteps1 : C::kSteps2; }
  static MOE_DEVICE int weight_tiles(int phase) { return phase == 0 ? C::kWeightTiles1 : C::kWeightTiles2; }
  MOE_DEVICE int phase_tiles(int p) const { return routing.first_tile[C::kExperts] * weight_tiles(p); }

  MOE_DEVICE int parts(int p) const { return C::kSplit ? routing.parts[p] : 1; }

  // First unit of a phase for a player: phase 1 goes on where phase 0's deal ended,
  // so that those who got fewer units of phase 0 come first.
  static MOE_DEVICE int deal(int units0, int p, int player, int players) {
    if (p == 0) return player;
    const int next = player - units0 % players;
    return next < 0 ? next + players : next;
  }
  MOE_DEVICE int pairs_before(int p, int e) const {
    const int odd = routing.first_odd[e];
    return (routing.first_tile[e] - odd) / 2 * weight_tiles(p) + odd * (weight_tiles(p) / 2);
  }

  MOE_DEVICE void enter_phase(int p) {
    phase = p;
    expert = 0;
    const int block = blockIdx.x;
    if constexpr (C::kPairs) {
      position = deal(pairs_before(0, C::kExperts), p, block / 2, gridDim.x / 2);
      end = pairs_before(p, C::kExperts);
    } else {
      position = deal(phase_tiles(0) * parts(0), p, block, gridDim.x);
      end = phase_tiles(p) * parts(p);
    }
  }

  MOE_DEVICE bool next(Segment& s) {
    while (phase < 0 || position >= end) {
      if (phase == 1) return false;
      enter_phase(phase + 1);
    }
    const int n = steps(phase), wide = weight_tiles(phase);
    s.phase = phase;
    s.parts = parts(phase);
    s.tile = position / s.parts;
    s.part = position - s.tile * s.parts;
    s.step = s.part * n / s.parts;
    s.last_step = (s.part + 1) * n / s.parts;
    position += C::kPairs ? gridDim.x / 2 : gridDim.x;
    auto before = [&](int e) { return C::kPairs ? pairs_before(phase, e) : routing.first_tile[e] * wide; };
    while (s.tile >= before(expert + 1)) ++expert;
    const int base = routing.first_tile[expert];
    const int token_tiles = routing.first_tile[expert + 1] - base;
    int inside = s.tile - before(expert), t;
    s.expert = expert;
    s.share_weights = 0;
    if constexpr (C::kPairs) {
      const int rank = blockIdx.x & 1, twos = token_tiles / 2;
      if (inside < twos * wide) {
        s.share_weights = 1;
        s.weight_tile = inside / twos;
        t = 2 * (inside - s.weight_tile * twos) + rank;
      } else {
        s.weight_tile = 2 * (inside - twos * wide) + rank;
        t = token_tiles - 1;
      }
    } else {
      s.weight_tile = inside / token_tiles;
      t = inside - s.weight_tile * token_tiles;
    }
    s.token_tile = base + t;
    s.row = routing.first_row[expert] + t * C::kTokenTile;
    s.rows = min(C::kTokenTile, routing.first_row[expert + 1] - s.row);
    return true;
  }
};

}  // namespace moe
