// From products to memory: scales, biases, router weight, activation, quantisation. Products hold
// weight rows by tokens, so what is stored goes through the block's memory to become rows of
// tokens.
#pragma once
#include "kernels/hip/device/formats.h"
#include "kernels/hip/device/tiles.h"

namespace moe {

// A wave's products: gate and up, or the halves of a down tile.
template <class C>
struct Totals {
  Product<C> at[2][C::kPairTiles][C::kTokenTiles];
};

// Rows in the block's memory, kColumns of kBytes each, on their way out.
template <class C, int kBytes>
struct Staging {
  static constexpr int kRowChunks = C::kColumns * kBytes / kChunkBytes;
  static constexpr int kSwizzle = kRowChunks < 8 ? kRowChunks - 1 : 7;
  u8* base;
  MOE_DEVICE explicit Staging(GemmShared<C>& lds) : base(reinterpret_cast<u8*>(lds.tokens)) {
    static_assert(C::kTokens * kRowChunks * kChunkBytes <= static_cast<int>(sizeof(lds.tokens)),
                  "staging");
  }
  MOE_DEVICE u8* chunk(int token, int i) const {
    return base + (token * kRowChunks + (i ^ (token & kSwizzle))) * kChunkBytes;
  }
  // Four columns from a multiple of four on.
  template <class Word>
  MOE_DEVICE void put(int token, int column, const Word (&v)[4]) const {
    struct alignas(4 * kBytes) Four {
      Word v[4];
    };
    const int at = column * kBytes;
    *reinterpret_cast<Four*>(chunk(token, at / kChunkBytes) + at % kChunkBytes) =
        Four{{v[0], v[1], v[2], v[3]}};
  }
  // All rows to `to`, whose rows are `pitch` bytes apart, of each the first `bytes`.
  MOE_DEVICE void copy_out(u8* to, i64 pitch, int rows, int bytes, int thread) const {
    for (int at = thread; at < C::kTokens * kRowChunks; at += C::kThreads) {
      const int token = at / kRowChunks, i = at % kRowChunks;
      if (token < rows && i * kChunkBytes < bytes)
        *reinterpret_cast<Chunk*>(to + token * pitch + i * kChunkBytes) =
            *reinterpret_cast<const Chunk*>(chunk(token, i));
    }
  }
};

// Row of the tile's half (so column of the output's part) that sum i of row tile p is.
template <class C>
MOE_DEVICE int column_of(int p, int i, int wave, int lane) {
  return (wave * C::kPairTiles + p) * C::kDim + row_of<C>(i, lane);
}

// Scales by channel: of this lane's rows in half `half`, row tile p.
template <class C, Phase kPhase>
MOE_DEVICE float channel_scale(const LayerArgs& args, const Tile& tile, int half, int column) {
  const bool up = kPhase == Phase::gate_up;
  const int rows = (up ? args.w13_tiles : args.w2_tiles) * kTileRows;
  const int row = up ? half * (rows / 2) + tile.weight_tile * C::kColumns + column
                     : (2 * tile.weight_tile + half) * C::kColumns + column;
  return (up ? args.w13_scale : args.w2_scale)[static_cast<i64>(tile.expert) * rows + row];
}

// gate[i] becomes the activation function's output.
template <class C>
MOE_DEVICE void apply_activation(const LayerArgs& args, const Tile& tile, const GemmShared<C>& lds,
                                 Totals<C>& totals,
                                 float (&out)[C::kPairTiles][C::kTokenTiles][C::kSums], int wave,
                                 int lane) {
#pragma unroll
  for (int p = 0; p < C::kPairTiles; ++p) {
    float gate_scale[C::kSums], up_scale[C::kSums], gate_bias[C::kSums], up_bias[C::kSums];
#pragma unroll
    for (int i = 0; i < C::kSums; ++i) {
      const int column = column_of<C>(p, i, wave, lane),
                n = tile.weight_tile * C::kColumns + column;
      if constexpr (C::kChannelScales) {
        gate_scale[i] = channel_scale<C, Phase::gate_up>(args, tile, 0, column);
        up_scale[i] = channel_scale<C, Phase::gate_up>(args, tile, 1, column);
      }
      gate_bias[i] = up_bias[i] = 0.0f;
      if (args.w13_bias != nullptr && n < args.inter) {
        const float* bias = args.w13_bias + static_cast<i64>(tile.expert) * 2 * args.inter + n;
        gate_bias[i] = bias[0];
        up_bias[i] = bias[args.inter];
      }
    }
#pragma unroll
    for (int t = 0; t < C::kTokenTiles; ++t) {
      const int token = t * C::kDim + lane % C::kDim;
      const int source = lds.source[token];
      float token_scale = 1.0f;
      if constexpr (C::kChannelScales) token_scale = source < 0 ? 0.0f : args.x_scale[source];
#pragma unroll
      for (int i = 0; i < C::kSums; ++i) {
        float gate = static_cast<float>(totals.at[0][p][t].v[i]),
              up = static_cast<float>(totals.at[1][p][t].v[i]);
        if constexpr (C::kChannelScales) {
          gate *= gate_scale[i] * token_scale;
          up *= up_scale[i] * token_scale;
        }
        gate += gate_bias[i];
        up += up_bias[i];
        if constexpr (C::kOnInput) {
          gate *= lds.factor[token];
          up *= lds.factor[token];
        }
        out[p][t][i] = activate(args, gate, up);
      }
    }
  }
}

// A scale for each token's 128 columns, which all waves hold together.
template <class C>
MOE_DEVICE void scale_tokens(const LayerArgs& args, const Tile& tile, GemmShared<C>& lds,
                             const float (&h)[C::kPairTiles][C::kTokenTiles][C::kSums], int thread,
                             int wave, int lane) {
#pragma unroll
  for (int t = 0; t < C::kTokenTiles; ++t) {
    float amax = 0.0f;
#pragma unroll
    for (int p = 0; p < C::kPairTiles; ++p) {
#pragma unroll
      for (int i = 0; i < C::kSums; ++i) amax = fmaxf(amax, finite_magnitude(h[p][t][i]));
    }
#pragma unroll
    for (int d = C::kDim; d < C::kLanes; d *= 2)
      amax = fmaxf(amax, __uint_as_float(gpu::shuffle_xor(__float_as_uint(amax), d)));
    if (lane < C::kDim) lds.wave_max[wave][t * C::kDim + lane] = amax;
  }
  gpu::sync_shared();
  if (thread < C::kTokens) {
    float amax = 0.0f;
#pragma unroll
    for (int w = 0; w < C::kWaves; ++w) amax = fmaxf(amax, lds.wave_max[w][thread]);
    const float scale = activation_scale(args, amax);
    lds.h_scale[thread] = scale;
    lds.inverse[thread] = 1.0f / scale;
    if (thread < tile.rows)
      args.h_scale[static_cast<i64>(tile.weight_tile) * args.pairs + tile.row + thread] = scale;
  }
  gpu::sync_shared();
}

template <class C>
MOE_DEVICE void finish_gate_up(const LayerArgs& args, const Tile& tile, GemmShared<C>& lds,
                               Totals<C>& totals, int thread, int wave, int lane) {
  float h[C::kPairTiles][C::kTokenTiles][C::kSums];
  apply_activation<C>(args, tile, lds, totals, h, wave, lane);
  if constexpr (C::kQuantises) scale_tokens<C>(args, tile, lds, h, thread, wave, lane);
  constexpr int kBytes = C::kQuantises ? 1 : C::kHalf ? 2 : C::kWideBytes;
  const Staging<C, kBytes> staging(lds);
#pragma unroll
  for (int p = 0; p < C::kPairTiles; ++p) {
#pragma unroll
    for (int t = 0; t < C::kTokenTiles; ++t) {
      const int token = t * C::kDim + lane % C::kDim;
#pragma unroll
      for (int i = 0; i < C::kSums; i += 4) {
        const float* v = &h[p][t][i];
        const int column = column_of<C>(p, i, wave, lane);
        if constexpr (C::kQuantises) {
          u8 q[4];
#pragma unroll
          for (int j = 0; j < 4; ++j)
            q[j] = encode_fp8<C::Arch::kFnuz>(
                divide_by_scale(v[j], lds.h_scale[token], lds.inverse[token]), args.maximum);
          staging.put(token, column, q);
        } else if constexpr (kBytes == 4) {
          const float wide[4] = {v[0], v[1], v[2], v[3]};
          staging.put(token, column, wide);
        } else {
          u16 half[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) half[j] = float_to_half(v[j], args.fp16);
          staging.put(token, column, half);
        }
      }
    }
  }
  gpu::sync_shared();
  constexpr bool kWide = !C::kQuantises && !C::kHalf;
  u8* to = kWide ? static_cast<u8*>(args.h_wide) : args.h_rows;
  // In elements the rows of h_rows and h_wide are alike.
  const i64 columns = args.h_pitch / C::kElementBytes, first = tile.weight_tile * C::kColumns;
  staging.copy_out(to + (tile.row * columns + first) * kBytes, columns * kBytes, tile.rows,
                   static_cast<int>(columns - first) * kBytes, thread);
}

template <class C>
MOE_DEVICE void finish_down(const LayerArgs& args, const Tile& tile, GemmShared<C>& lds,
                            Totals<C>& totals, int thread, int wave, int lane) {
  const Staging<C, 2> staging(lds);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first = (2 * tile.weight_tile + half) * C::kColumns;
    if (first >= args.hidden) break;    // the same for all threads
    if (half == 1) gpu::sync_shared();  // the first half has left
#pragma unroll
    for (int p = 0; p < C::kPairTiles; ++p) {
#pragma unroll
      for (int t = 0; t < C::kTokenTiles; ++t) {
        const int token = t * C::kDim + lane % C::kDim, source = lds.source[token];
        float token_scale = 1.0f;
        if constexpr (C::kChannelScales) token_scale = source < 0 ? 0.0f : args.h_scale[source];
#pragma unroll
        for (int i = 0; i < C::kSums; i += 4) {
          u16 out[4];
          const int column = column_of<C>(p, i, wave, lane);
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            float v = static_cast<float>(totals.at[half][p][t].v[i + j]);
            if constexpr (C::kChannelScales)
              v *= channel_scale<C, Phase::down>(args, tile, half, column + j) * token_scale;
            if (args.w2_bias != nullptr && first + column + j < args.hidden)
              v += args.w2_bias[static_cast<i64>(tile.expert) * args.hidden + first + column + j];
            v *= lds.factor[token];
            out[j] = float_to_half(v, args.fp16);
          }
          staging.put(token, column, out);
        }
      }
    }
    gpu::sync_shared();
    staging.copy_out(
        reinterpret_cast<u8*>(args.pair_out + static_cast<i64>(tile.row) * args.hidden + first),
        static_cast<i64>(args.hidden) * 2, tile.rows, (args.hidden - first) * 2, thread);
  }
}

}  // namespace moe
