// Which tile a block works on, and how its operands come from memory.
#pragma once
#include "kernels/hip/device/matrix.h"

namespace moe {

// gate_up: tokens by gate and up rows. down: what that made by the down projection.
enum class Phase : int { gate_up, down };

struct Tile {
  int expert = -1;        // -1: nothing to do
  int row = 0, rows = 0;  // first row and rows of the token tile
  int weight_tile = 0;
};

template <class C, Phase kPhase>
MOE_DEVICE int weight_tiles(const LayerArgs& args) {
  const int columns = kPhase == Phase::gate_up ? args.h_pitch / C::kElementBytes : args.hidden;
  constexpr int kWidth = kPhase == Phase::gate_up ? C::kColumns : 2 * C::kColumns;
  return (columns + kWidth - 1) / kWidth;
}

// The grid is what may be needed; what is needed the device knows. Blocks that a die runs after one
// another get tiles that follow one another: `group` token tiles take turns at a weight tile, so
// that both stay in that die's L2.
template <class C, Phase kPhase>
MOE_DEVICE Tile find_tile(const LayerArgs& args) {
  const int width = weight_tiles<C, kPhase>(args), tiles = gpu::uniform(*args.tile_count);
  const int blocks = tiles * width, block = gpu::block();
  if (block >= blocks) return {};
  constexpr int kDies = C::Arch::kDies;
  const int die = block % kDies, of_die = block / kDies;
  const int place = die * (blocks / kDies) + min(die, blocks % kDies) + of_die;
  const int first = place / (args.group * width) * args.group,
            within = place % (args.group * width);
  const int together = min(args.group, tiles - first);
  const int token_tile = first + within % together;
  Tile t;
  t.weight_tile = within / together;
  t.expert = gpu::uniform(args.tile_expert[token_tile]);
  t.row = gpu::uniform(args.tile_row[token_tile]);
  t.rows = min(C::kTokens, gpu::uniform(args.first_row[t.expert + 1]) - t.row);
  return t;
}

template <class C>
struct GemmShared {
  // Two steps of tokens; the epilogue's rows afterwards. A row's chunks are swizzled by its low
  // bits, so that lanes of different rows hit different banks.
  Chunk tokens[2][C::kTokens * kChunks];
  float scale[2][C::kTokens];  // of the tokens, for the step
  int source[C::kTokens];      // row of the operand; -1 past the last
  float factor[C::kTokens];    // router weight, where it counts
  float wave_max[C::kWaves][C::kTokens];
  float inverse[C::kTokens];  // token scale of the activations, and its reciprocal
  float h_scale[C::kTokens];
};

// A wave's weights of one step: row tiles of gate and of up (or both halves of the down tile).
template <class C>
struct Weights {
  static constexpr int kTiles16 = C::kDim / kTileRows;  // packed tiles of an instruction's rows
  Chunk chunk[2][C::kPairTiles][C::kLaneChunks];
  float scale[2][C::kPairTiles][C::kBlockScales ? kTiles16 : 1];
};

// Where a wave's packed tiles begin, and how they go on.
template <class C, Phase kPhase>
struct WeightStream {
  const u8* from[2];
  const float* scale[2];
  int steps;

  MOE_DEVICE WeightStream(const LayerArgs& args, const Tile& tile, int wave, int lane) {
    const bool up = kPhase == Phase::gate_up;
    steps = (up ? args.x_pitch : args.h_pitch) / kStepBytes;
    const int tiles = up ? args.w13_tiles : args.w2_tiles;
    const u8* base = up ? args.w13 : args.w2;
    const float* scales = up ? args.w13_scale : args.w2_scale;
    const int row = lane % C::kDim, group = lane / C::kDim;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int box = up ? half * (tiles / 2) + tile.weight_tile * (C::kColumns / kTileRows)
                         : (2 * tile.weight_tile + half) * (C::kColumns / kTileRows);
      const i64 first = static_cast<i64>(tile.expert) * tiles + box +
                        wave * C::kPairTiles * (C::kDim / kTileRows);
      const i64 packed = first + row / kTileRows;
      from[half] =
          base + packed * steps * kTileBytes + (group * kTileRows + row % kTileRows) * kChunkBytes;
      if constexpr (C::kBlockScales) scale[half] = scales + first * steps;
    }
  }

  MOE_DEVICE void load(int step, Weights<C>& to) const {
    constexpr int kTiles16 = Weights<C>::kTiles16;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int p = 0; p < C::kPairTiles; ++p) {
        const u8* at = from[half] + (static_cast<i64>(p * kTiles16) * steps + step) * kTileBytes;
#pragma unroll
        for (int c = 0; c < C::kLaneChunks; ++c)
          to.chunk[half][p][c] =
              *reinterpret_cast<const Chunk*>(at + c * C::kGroups * kTileRows * kChunkBytes);
        if constexpr (C::kBlockScales) {
#pragma unroll
          for (int t = 0; t < kTiles16; ++t)
            to.scale[half][p][t] = scale[half][(p * kTiles16 + t) * steps + step];
        }
      }
    }
  }
};

// The block's tokens: rows gathered from memory through registers into its own memory.
template <class C, Phase kPhase>
struct TokenStream {
  static constexpr int kEach = (C::kTokens * kChunks + C::kThreads - 1) / C::kThreads;
  const u8* from[kEach];  // null: zeros
  const float* scales;
  int pitch_scales;
  Chunk ahead[kEach];
  float scale_ahead;

  MOE_DEVICE TokenStream(const LayerArgs& args, const GemmShared<C>& lds, int thread) {
    const bool up = kPhase == Phase::gate_up;
    const u8* base = up ? args.x_rows : args.h_rows;
    const i64 pitch = up ? args.x_pitch : args.h_pitch;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = thread + i * C::kThreads, row = at / kChunks;
      const int source = row < C::kTokens ? lds.source[row] : -1;
      from[i] = source < 0 ? nullptr : base + source * pitch + at % kChunks * kChunkBytes;
    }
    if constexpr (C::kBlockScales) {
      const int source = thread < C::kTokens ? lds.source[thread] : -1;
      scales = source < 0 ? nullptr : (up ? args.x_scale : args.h_scale) + source;
      pitch_scales = up ? args.tokens : args.pairs;
    }
  }

  MOE_DEVICE void load(int step) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      u64 low = 0, high = 0;  // each by itself stays in a register
      if (from[i] != nullptr) {
        const Chunk* at =
            reinterpret_cast<const Chunk*>(from[i] + static_cast<i64>(step) * kStepBytes);
        low = at->half[0];
        high = at->half[1];
      }
      ahead[i].half[0] = low;
      ahead[i].half[1] = high;
    }
    if constexpr (C::kBlockScales)
      scale_ahead = scales == nullptr ? 0.0f : scales[static_cast<i64>(step) * pitch_scales];
  }

  MOE_DEVICE void store(GemmShared<C>& lds, int buffer, int thread) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = thread + i * C::kThreads, row = at / kChunks;
      if (row < C::kTokens)
        lds.tokens[buffer][row * kChunks + ((at % kChunks) ^ (row & 7))] = ahead[i];
    }
    if constexpr (C::kBlockScales) {
      if (thread < C::kTokens) lds.scale[buffer][thread] = scale_ahead;
    }
  }
};

}  // namespace moe
