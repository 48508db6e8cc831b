// The two grouped GEMMs: every expert's rows in one launch. Weights go from memory straight into
// the registers of the one wave that multiplies them, kDepth steps ahead; tokens, which all waves
// need, through the block's memory, one step ahead. One barrier a step.
#pragma once
#include "kernels/hip/device/epilogue.h"
#include "kernels/hip/device/tiles.h"

namespace moe {

// One step: the products of a wave's rows with all tokens of the tile.
template <class C>
MOE_DEVICE void multiply_step(const GemmShared<C>& lds, int buffer, const Weights<C>& weights,
                              Totals<C>& totals, int lane) {
  const int column = lane % C::kDim, group = lane / C::kDim;
#pragma unroll
  for (int t = 0; t < C::kTokenTiles; ++t) {
    const int row = t * C::kDim + column;
    Chunk tokens[C::kLaneChunks];
#pragma unroll
    for (int c = 0; c < C::kLaneChunks; ++c)
      tokens[c] = lds.tokens[buffer][row * kChunks + ((c * C::kGroups + group) ^ (row & 7))];
    float token_scale = 0.0f;
    if constexpr (C::kBlockScales) token_scale = lds.scale[buffer][row];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int p = 0; p < C::kPairTiles; ++p) {
        Product<C>& total = totals.at[half][p][t];
        if constexpr (C::kBlockScales) {
          Product<C> part = {};
#pragma unroll
          for (int c = 0; c < C::kLaneChunks; ++c)
            multiply<C>(weights.chunk[half][p][c], tokens[c], part);
#pragma unroll
          for (int i = 0; i < C::kSums; ++i) {
            // With instructions of 32 rows, the first 8 sums are those of the first 16 rows.
            const float scale = weights.scale[half][p][C::kDim == 32 ? i / 8 : 0] * token_scale;
            total.v[i] = fmaf(part.v[i], scale, total.v[i]);
          }
        } else {
#pragma unroll
          for (int c = 0; c < C::kLaneChunks; ++c)
            multiply<C>(weights.chunk[half][p][c], tokens[c], total);
        }
      }
    }
  }
}

template <class C, Phase kPhase>
MOE_DEVICE void name_rows(const LayerArgs& args, const Tile& tile, GemmShared<C>& lds, int thread) {
  if (thread >= C::kTokens) return;
  const int row = tile.row + thread;
  const bool there = thread < tile.rows;
  lds.source[thread] = !there ? -1 : kPhase == Phase::gate_up ? args.row_token[row] : row;
  const bool counts = there && (kPhase == Phase::gate_up ? C::kOnInput : args.on_input == 0);
  lds.factor[thread] = counts ? args.row_weight[row] : 1.0f;
}

template <class C, Phase kPhase>
MOE_DEVICE void grouped_gemm(const LayerArgs& args) {
  static_assert(sizeof(GemmShared<C>) <= C::Arch::kSharedBytes, "tile and block's memory");
  MOE_LDS(GemmShared<C>, lds);
  const Tile tile = find_tile<C, kPhase>(args);
  if (tile.expert < 0) return;  // the whole block
  const int thread = gpu::thread(), wave = gpu::uniform(thread / C::kLanes),
            lane = thread % C::kLanes;
  const WeightStream<C, kPhase> stream(args, tile, wave, lane);
  const int steps = stream.steps;
  Weights<C> weights[C::kDepth];
#pragma unroll
  for (int d = 0; d < C::kDepth - 1; ++d)
    if (d < steps) stream.load(d, weights[d]);

  name_rows<C, kPhase>(args, tile, lds, thread);
  gpu::sync();
  TokenStream<C, kPhase> tokens(args, lds, thread);
  tokens.load(0);
  tokens.store(lds, 0, thread);
  gpu::sync_shared();

  Totals<C> totals = {};
  for (int base = 0; base < steps; base += C::kDepth) {
#pragma unroll
    for (int d = 0; d < C::kDepth; ++d) {
      const int step = base + d;
      if (step >= steps) break;
      const int next = step + C::kDepth - 1;
      if (next < steps) stream.load(next, weights[(d + C::kDepth - 1) % C::kDepth]);
      if (step + 1 < steps) tokens.load(step + 1);
      multiply_step<C>(lds, step & 1, weights[d], totals, lane);
      // The other buffer was last read before the barrier that ended the step before.
      if (step + 1 < steps) tokens.store(lds, (step + 1) & 1, thread);
      gpu::sync_shared();
    }
  }
  if constexpr (kPhase == Phase::gate_up)
    finish_gate_up<C>(args, tile, lds, totals, thread, wave, lane);
  else
    finish_down<C>(args, tile, lds, totals, thread, wave, lane);
}

}  // namespace moe
