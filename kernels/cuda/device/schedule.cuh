// Which tiles a block works on. Phase 0 is gate/up, phase 1 the down projection.
// Tiles are ordered expert, weight tile, token tile, so that blocks working next
// to each other share weights. Units of both phases form one line; the first kDealt
// rounds are dealt in turn, later units drawn from a counter. The order in both
// phases is the same, so the rows of the first units of phase 1 were made long before
// its last; and since every unit of phase 0 is given out before any of phase 1 and
// waits for nothing, waiting for rows cannot lock up.
//  split (kSplit, few tokens): where tiles alone would leave multiprocessors idle, a
//    tile's K steps are cut into parts, each a unit; the block that arrives last sums
//    them. The number of parts is chosen on the device from the number of tiles. Integer
//    weights: whole tiles while every block has one, and only the last, incomplete
//    round is cut.
//  pairs (kPairs): drawn by clusters of two blocks. An expert's token tiles are taken
//    two at a time, the blocks sharing the weights; a token tile left over meets two
//    weight tiles at a time, the blocks sharing the tokens where those are wgmma's M
//    (and each fetching them where they are its N).
#pragma once
#include "kernels/nvidia/device/config.cuh"

namespace moe {

struct Segment {
  int phase, expert, weight_tile, token_tile;  // token_tile counts over all experts
  int row, rows;                               // first row of the tile and rows in it
  int step, last_step;                         // K steps [step, last_step)
  int tile;                                    // within the phase
  int part, parts;                             // of the tile's K steps
  int cut;                                     // which of the tiles in parts, in this phase
  int token_tiles;                             // of the expert: tiles that read the same weights
  int share_weights;                           // pairs: 1 weights, 0 tokens are read for both blocks
  int counters;                                // alone: first of this launch's
};

static_assert(sizeof(Segment) <= 64, "a queue slot holds a segment");

template <class C>
MOE_DEVICE u32* counters_of(const LayerArgs& args, const Segment& s) {
  return args.counters + (C::kAlone ? s.counters : 0);
}

// Tables every role of the block reads.
struct Routing {
  const int* first_row;
  const int* first_tile;
  const int* first_odd;  // experts before with an odd number of token tiles
  const int* whole;      // tiles that are not cut, in each phase
  const int* parts;      // of a tile that is
};

// Parts that finish soonest: rounds of units times steps a unit, an exchange of
// partial sums costing about three steps. Lanes of a group of eight try 1..8 parts;
// all of the warp take part. Long tiles are cut to about 24 steps while units are few,
// so that blocks finish together; from three rounds of tiles on they do so anyway, and
// the exchanges only cost. `wide`: tiles with large partial sums are cut only
// to give every block a unit. `last_round`: fewer tiles than blocks, after whole ones
// that kept all blocks busy.
MOE_DEVICE int choose_parts(int tiles, int steps, int blocks, bool wide, bool last_round, int lane) {
  const int p = lane % 8 + 1, most = wide && !last_round ? blocks : kMaxSplitUnits, exchange = wide && last_round ? 6 : 3;
  const bool possible = p == 1 || (tiles < 3 * blocks && steps >= 3 * p && tiles * p <= most);
  int best = possible ? (ceil_div(tiles * p, blocks) * (ceil_div(steps, p) + (p > 1 ? exchange : 0)) * 8 + p - 1) : 0x7fffffff;
  for (int d = 4; d > 0; d /= 2) best = min(best, __shfl_xor_sync(0xffffffffu, best, d));
  const int even = wide ? 1 : min(min(steps / 24, kMaxSplitUnits / 2 / max(tiles, 1)), 8);
  return max(best % 8 + 1, even);
}

template <class C>
struct Schedule {
  Routing routing;
  int phase = 0, expert = 0;

  MOE_DEVICE explicit Schedule(Routing r) : routing(r) {}

  static MOE_DEVICE int steps(int p) { return p == 0 ? C::kSteps1 : C::kSteps2; }
  static MOE_DEVICE int weight_tiles(int p) { return p == 0 ? C::kWeightTiles1 : C::kWeightTiles2; }
  MOE_DEVICE int parts(int p) const { return C::kSplit ? routing.parts[p] : 1; }
  // Tiles (pairs of them) of the experts before e.
  MOE_DEVICE int tiles_before(int p, int e) const {
    if constexpr (!C::kPairs) return routing.first_tile[e] * weight_tiles(p);
    const int odd = routing.first_odd[e];
    return (routing.first_tile[e] - odd) / 2 * weight_tiles(p) + odd * (weight_tiles(p) / 2);
  }
  MOE_DEVICE int whole(int p) const { return C::kSplit ? routing.whole[p] : 0; }
  MOE_DEVICE int units(int p) const { return whole(p) + (tiles_before(p, C::kExperts) - whole(p)) * parts(p); }

  // Fills in unit u of the line; false past its end. Units must not go backwards.
  MOE_DEVICE bool locate(int u, Segment& s) {
    const int units0 = units(0);
    if (u >= units0 + units(1)) return false;
    if (phase == 0 && u >= units0) phase = 1, expert = 0;
    if (phase == 1) u -= units0;
    const int n = steps(phase), wide = weight_tiles(phase);
    s.phase = phase;
    const int uncut = whole(phase);
    s.parts = u < uncut ? 1 : parts(phase);
    s.cut = (u - uncut) / s.parts;
    s.part = u < uncut ? 0 : u - uncut - s.cut * s.parts;
    s.tile = u < uncut ? u : uncut + s.cut;
    s.step = s.part * n / s.parts;
    s.last_step = (s.part + 1) * n / s.parts;
    int last = C::kExperts - 1;  // the first expert with tiles past s.tile is in [expert, last]
    while (expert < last) {
      const int middle = (expert + last) / 2;
      if (tiles_before(phase, middle + 1) > s.tile) last = middle;
      else expert = middle + 1;
    }
    const int base = routing.first_tile[expert];
    const int token_tiles = routing.first_tile[expert + 1] - base;
    const int inside = s.tile - tiles_before(phase, expert);
    int t;
    s.expert = expert;
    s.share_weights = 0;
    s.token_tiles = token_tiles;
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

// The next unit of a player (a block or pair) after its `turn`-th. A player that got
// all it was dealt draws until it draws nothing, which makes max(0, units - (kDealt -
// 1) * players) draws in all: whoever makes the last resets the counter.
template <class C>
MOE_DEVICE int next_unit(const LayerArgs& args, const Schedule<C>& schedule, int unit, int turn) {
  const int players = C::kPairs ? gridDim.x / 2 : gridDim.x;
  if (turn < C::kDealt) return unit + players;
  const int drawn = static_cast<int>(atomicAdd(args.drawn, 1u));
  if (drawn + 1 == schedule.units(0) + schedule.units(1) - (C::kDealt - 1) * players) *args.drawn = 0;
  return C::kDealt * players + drawn;
}

}  // namespace moe
