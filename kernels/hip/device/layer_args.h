// What host and device agree on: the arguments of a layer's kernels and how its weights are packed.
// Compiled by both sides, so it has types and constants only. Shapes are arguments: one code object
// serves every layer.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

// Packed weights: tiles of 16 rows by 128 bytes of the contracted dimension (a step), each as 8
// chunks of 16 rows x 16 bytes, so that a wave's load of a tile is contiguous. Rows and columns
// beyond the matrix are zero. The steps of a tile lie one after the other, then the next tile.
//   w13: gate rows, padded to a multiple of 128, then up rows, padded alike
//   w2:  padded to a multiple of 256 rows
constexpr int kTileRows = 16, kStepBytes = 128, kChunkBytes = 16;
constexpr int kTileBytes = kTileRows * kStepBytes;
constexpr int kChunks = kStepBytes / kChunkBytes;
constexpr int kGateRows = 128, kDownRows = 256;  // what rows are padded to

constexpr int kPrepareThreads = 256;
constexpr int kChunkTokens = 32;  // tokens that one block groups by expert
constexpr int kMaxTopK = 32;      // so that a chunk's pairs fit
constexpr int kMaxExperts = 1024;

// As ActivationKind of reference/layer.h.
enum class Activate : int { silu, gelu, gelu_tanh, swiglu_clamped };

struct LayerArgs {
  // The caller's tensors.
  const u16* x;               // [tokens, hidden] bf16, or fp16
  const int* topk_ids;        // [tokens, top_k] global
  const float* topk_weights;  // [tokens, top_k]
  const int* expert_map;      // global to local or -1; null when all are local
  const u8 *w13, *w2;         // packed
  // Blocks: [E, tiles, steps]. Channels: [E, tiles * 16]. Null without scales.
  const float *w13_scale, *w2_scale;
  const float *w13_bias, *w2_bias;  // [E, 2 * inter], gate before up; [E, hidden]; null without
  u16* y;                           // [tokens, hidden]
  // Workspace. A row is a local pair; rows of an expert are contiguous, in pair order.
  int* chunk_counts;  // [chunks, E] pairs of each expert
  int* first_row;     // [E + 1]
  int* tile_expert;   // [tile_capacity] of each token tile
  int* tile_row;      // its first row
  int* tile_count;    // [1]
  int* row_token;     // [pairs]
  float* row_weight;  // [pairs]
  int* pair_row;      // [tokens, top_k], -1 for a pair without a local expert
  u32* amax;          // [2] bits of the largest magnitude of x and of h, one scale a tensor only
  u8* x_rows;         // [tokens, x_pitch] as the matrix instructions take them
  float* x_scale;     // blocks: [steps, tokens]; else [tokens]
  u8* h_rows;         // [pairs, h_pitch]
  float* h_scale;     // blocks: [steps, pairs]; else [pairs]
  void* h_wide;       // [pairs, h_pitch] elements before quantisation, fp32 or 16 bits
  u16* pair_out;      // [pairs, hidden]
  int tokens, hidden, inter, experts, top_k;  // experts: local
  int pairs;                                  // tokens * top_k
  int x_pitch, h_pitch;                       // bytes, multiples of kStepBytes
  int w13_tiles, w2_tiles;                    // of an expert
  int tile_tokens;                            // of the GEMMs' tiles
  int group;                                  // token tiles that take turns at a weight tile
  int on_input;  // the router weight has been applied by the first GEMM
  int fp16;      // x, y and 16-bit intermediates; else bf16
  // Activations are quantised with scale max(max(amax, amax_floor) / maximum, scale_floor), or with
  // these if they are positive.
  float maximum, amax_floor, scale_floor, fixed_x_scale, fixed_h_scale;
  Activate activation;
  float alpha, beta, limit;  // swiglu_clamped
};

}  // namespace moe
