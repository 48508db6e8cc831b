// From accumulators to memory. Accumulators hold weight rows by tokens, so every
// store goes through shared memory to become rows of tokens.
#pragma once
#include "kernels/cuda/device/token_rows.cuh"

namespace moe {

// The epilogue's shared memory, reused by every tile.
template <class C>
struct Scratch {
  u8* staging;
  float *column_factor, *column_inverse, *warp_max, *unit_inverse;
  int* column_token;
  MOE_DEVICE explicit Scratch(u8* base) {
    staging = base;
    column_factor = reinterpret_cast<float*>(base + C::kStagingBytes);
    column_inverse = column_factor + C::kTokenTile;
    column_token = reinterpret_cast<int*>(column_inverse + C::kTokenTile);
    warp_max = reinterpret_cast<float*>(column_token + C::kTokenTile);
    unit_inverse = C::kMx ? warp_max + 8 * C::kTokenTile : column_inverse;
  }
};

// Stores one warpgroup's 64 rows by kTokenTile tokens as 16-bit rows of tokens:
// dst points at (token 0, this block's first column); columns from `limit` on are
// outside the matrix. row_of maps a token of the tile to its row of dst, column_of to its column of v.
template <class C, class RowOf, class ColumnOf>
MOE_DEVICE void store_half(const Tile<C>& v, const Scratch<C>& scratch, const Place& at, u16* dst, i64 pitch, int rows,
                           int limit, RowOf row_of, ColumnOf column_of) {
  u8* staging = scratch.staging + at.group * C::kStageTokens * 128;
  const u32 staging_address = smem_address(staging);
  const int in_group = at.thread % 128;
#pragma unroll
  for (int t0 = 0; t0 < C::kTokenTile; t0 += 64) {
    if (t0 >= rows) break;
    constexpr int kWidth = C::kStageTokens;
    sync_group(at.group);
    // 16-byte chunks of a token's 128 bytes are swizzled by the token's low bits.
    auto address = [&](int token, int chunk) {
      return staging_address + token * 128 + ((chunk ^ (token & 7)) << 4);
    };
    const int i = (at.lane / 8) & 1, jj = at.lane / 16;
#pragma unroll
    for (int j = 0; j < kWidth / 8; j += 2) {
      if (t0 + 8 * j >= C::kTokenTile) break;
      const float* p = &v[(t0 / 8 + j) * 4];
      if (t0 + 8 * (j + 1) < C::kTokenTile && j + 1 < kWidth / 8) {
        store_matrix_transposed(address(8 * (j + jj) + at.lane % 8, at.warp * 2 + i), C::H::pack(p[0], p[1]),
                                C::H::pack(p[2], p[3]), C::H::pack(p[4], p[5]), C::H::pack(p[6], p[7]));
      } else {
        store_matrix_transposed(address(8 * j + at.lane % 8, at.warp * 2 + i), C::H::pack(p[0], p[1]),
                                C::H::pack(p[2], p[3]));
      }
    }
    sync_group(at.group);
    const int chunk = in_group % 8;
#pragma unroll
    for (int t = in_group / 8; t < kWidth; t += 16) {
      if (t0 + t < rows && chunk * 8 < limit) {
        const int c = column_of(t);
        const uint4 line = *reinterpret_cast<const uint4*>(staging + c * 128 + ((chunk ^ (c & 7)) << 4));
        *reinterpret_cast<uint4*>(dst + row_of(t0 + t) * pitch + chunk * 8) = line;
      }
    }
  }
}

// Tells phase 1 that one more gate/up tile of the token tile is in memory.
MOE_DEVICE void publish(u32* counter, const Place& at) {
  sync_math();
  if (at.thread == 0) add_release(counter, 1);  // releases what the barrier gathered
}

// Block FP8: activation, amax over the 128 columns of both warpgroups (microscaling: over the 32 of two
// warps), E4M3.
template <class C, class ColumnOf>
MOE_DEVICE void finish_gate_up_block(const LayerArgs& args, const Segment& s, Tile<C>& gate, const Tile<C>& up,
                                     const Scratch<C>& scratch, const Place& at, ColumnOf column_of) {
  activate<C, 2>(args, gate, up);
  float* mine = scratch.warp_max + (at.group * 4 + at.warp) * C::kTokenTile;
#pragma unroll
  for (int j = 0; j < C::kTokenTile / 8; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      float amax = finite_amax<2, 2>(gate + 4 * j + c);
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 4));
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 8));
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 16));
      if (at.lane < 4) mine[8 * j + 2 * at.lane + c] = amax;
    }
  }
  sync_math();
  constexpr int kWarps = 8 / C::kUnits;  // of a unit
#pragma unroll
  for (int i = at.thread; i < C::kUnits * C::kTokenTile; i += kMathThreads) {
    const int unit = i / C::kTokenTile, token = i % C::kTokenTile;
    if (C::kAlone && token >= s.rows) continue;  // no column is its
    const int column = column_of(token);
    float amax = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) amax = fmaxf(amax, scratch.warp_max[(unit * kWarps + w) * C::kTokenTile + column]);
    const float scale = unit_scale<C>(amax);
    scratch.unit_inverse[unit * C::kTokenTile + column] = 1.0f / scale;
    if (token < s.rows) args.h_scale[static_cast<i64>(s.weight_tile * C::kUnits + unit) * args.row_pitch + s.row + token] = scale;
  }
  sync_math();
  const int column = at.group * 64 + at.warp * 16 + at.lane / 4;
  const float* inverses = scratch.unit_inverse + (at.group * 4 + at.warp) / kWarps * C::kTokenTile;
#pragma unroll
  for (int j = 0; j < C::kTokenTile / 8; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int token = 8 * j + 2 * (at.lane % 4) + c;
      const float inverse = inverses[token];
      const u16 q = pack_e4m3(gate[4 * j + c] * inverse, gate[4 * j + 2 + c] * inverse);
      scratch.staging[token * C::kQuantPitch + column] = static_cast<u8>(q);
      scratch.staging[token * C::kQuantPitch + column + 8] = static_cast<u8>(q >> 8);
    }
  }
  sync_math();
  const int chunk = at.thread % 8;
  const int first_column = s.weight_tile * 128 + chunk * 16;
#pragma unroll
  for (int t = at.thread / 8; t < C::kTokenTile; t += 32)
    if (t < s.rows && first_column < C::kInter)
      *reinterpret_cast<uint4*>(args.h_rows + static_cast<i64>(s.row + t) * C::kInter + first_column) =
          *reinterpret_cast<const uint4*>(scratch.staging + column_of(t) * C::kQuantPitch + chunk * 16);
  publish(counters_of<C>(args, s) + s.token_tile, at);
}

// Per-token codes: a row's scale needs all N columns, so the block that finishes the
// last gate/up tile of a token tile quantises its rows, a warp a row.
template <class C>
MOE_DEVICE void quantise_rows(const LayerArgs& args, const Segment& s, const Place& at) {
  quantise_wide_rows<C>(args, s.row + at.group * 4 + at.warp, s.row + s.rows, 8, at.lane,
                        C::kTensorGiven ? args.tensor_scale[1] : 0.0f);
}

// 16-bit activations in memory, as they stay or on their way to per-token codes.
template <class C, class ColumnOf>
MOE_DEVICE void finish_gate_up_wide(const LayerArgs& args, const Segment& s, Tile<C>& gate, const Tile<C>& up,
                                    const Scratch<C>& scratch, const Place& at, int* shared_flag, ColumnOf column_of) {
  activate<C, 2>(args, gate, up);
  const int column = s.weight_tile * 128 + at.group * 64;
  u16* dst = (C::kChannelScales ? args.h_wide : reinterpret_cast<u16*>(args.h_rows)) +
             static_cast<i64>(s.row) * C::kInter + column;
  store_half<C>(gate, scratch, at, dst, C::kInter, s.rows, C::kInter - column, [](int t) { return static_cast<i64>(t); }, column_of);
  if constexpr (C::kTensorAmax) return;  // quantise_tensor does the rest
  if constexpr (C::kChannelScales && !C::kAlone) {
    sync_math();
    if (at.thread == 0) {
      *shared_flag = fetch_add_acq_rel(counters_of<C>(args, s) + args.tile_capacity + s.token_tile, 1) == C::kWeightTiles1 - 1;
    }
    sync_math();
    if (!*shared_flag) return;
    quantise_rows<C>(args, s, at);
  }
  publish(counters_of<C>(args, s) + s.token_tile, at);
}

// Weighted rows of the down projection, 16 bits, to pair_out or straight to y.
template <class C>
MOE_DEVICE void finish_down(const LayerArgs& args, const Segment& s, const Tile<C>& v, int box, const Scratch<C>& scratch,
                            const Place& at) {
  const int column = s.weight_tile * 256 + box * 128 + at.group * 64;
  auto itself = [](int t) { return t; };
  if (C::kDirect) {
    store_half<C>(v, scratch, at, args.y + column, C::kHidden, s.rows, C::kHidden - column,
                  [&](int t) { return static_cast<i64>(scratch.column_token[t]); }, itself);
  } else {
    store_half<C>(v, scratch, at, args.pair_out + static_cast<i64>(s.row) * C::kHidden + column, C::kHidden, s.rows,
                  C::kHidden - column, [](int t) { return static_cast<i64>(t); }, itself);
  }
}

}  // namespace moe
