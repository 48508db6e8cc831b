// What host and device agree on: the arguments of a layer's kernels and how they are launched.
// Compiled by both sides, so it has types and constants only.
#pragma once
#include "kernels/device/platform.h"

namespace moe {

// CUtensorMap without <cuda.h>, so that NVRTC needs no include path for it.
struct alignas(64) TensorMap {
  u8 bytes[128];
};

constexpr int kSharedLimit = 232448;  // bytes of shared memory that a block may have

// Threads of the layer kernel: one warpgroup of producer warps, two that multiply.
constexpr int kProducerThreads = 128;
constexpr int kMathThreads = 256;
constexpr int kLayerThreads = kProducerThreads + kMathThreads;
constexpr int kPrepareThreads = 256;
// Up to this many pairs every block counts all of topk_ids itself, so that the
// weight stream can start before the prepare kernel has finished.
constexpr int kSelfCountPairs = 4096;
constexpr int kCombineThreads = 256;
// Up to this many pairs the layer kernel sums them itself.
constexpr int kInsidePairs = 64;
// And up to so many tokens, elements of x and bytes of shared memory it is the whole layer, see
// alone.cuh.
constexpr int kAloneTokens = 8, kAloneColumns = 32768;
// Tokens of a group: counted together for batches too large for every block to
// count all pairs itself.
constexpr int kGroupTokens = 128;
// Units a phase may have when its tiles are cut; bounds the partial sums' memory.
constexpr int kMaxSplitUnits = 8 * 132;

struct LayerArgs {
  TensorMap x_rows_map, h_rows_map;
  // The caller's tensors.
  const u16* x;                      // [M, K] bf16
  const int* topk_ids;               // [M, top_k]
  const float* topk_weights;         // [M, top_k]
  const int* expert_map;             // global to local or -1; null when all are local
  const u8 *w13_chunks, *w2_chunks;  // weights, see box_layout.h and int_layout.h
  const float* w13_scale;            // block: [E, tiles, groups of rows, K/128]; ptpc: [E, 2N]
  const float* w2_scale;             // block: [E, tiles, groups of rows, N/128]; ptpc: [E, K]
  const float* tensor_scale;         // fp8_tensor_static: of x and of h
  u32* tensor_amax;  // fp8_tensor: of x; zero between launches, the layer kernel leaves it so
  const float *w13_bias, *w2_bias;  // kBias: [E, 2N], [E, K]
  const u16* x_order;  // [E, K] kOrdered: the column of x at each place of an expert's rows
  u16* y;              // [M, K] bf16
  // Workspace. A row is a local pair, grouped by expert; row_pitch >= rows + tile.
  u8* x_rows;         // [row_pitch, K] quantised (or bf16) tokens
  float* x_scale;     // block: [K/128, row_pitch]; mxfp8: [4 K/128, row_pitch]; ptpc: [row_pitch]
  u8* h_rows;         // [row_pitch, N] activations, quantised or bf16
  float* h_scale;     // block: [N/128, row_pitch]; mxfp8: [4 N/128, row_pitch]; ptpc: [row_pitch]
  u16* h_wide;        // ptpc: [row_pitch, N] bf16 before quantisation
  u16* pair_out;      // [row_pitch, K] bf16, weighted
  float* row_weight;  // [row_pitch]
  int* row_token;     // [row_pitch]
  int* pair_row;      // [M, top_k] row of a pair or -1
  int* expert_rows;   // [E] rows of each expert
  int* group_rows;    // [M / 128, E] when there are more than kSelfCountPairs pairs
  u32* counters;      // alone: two sets, which the layer kernel leaves zero in turn; else zeroed by
                      // prepare: per token tile ready (1), quantised (2); parts arrived
  u32* drawn;         // units drawn; zero between launches, the kernel leaves it so
  u32* turn;       // alone: which of two sets of counters this launch has, and blocks that know all
                   // their units
  float* partial;  // fp32 partial tiles, kSplit only
  u64* trace;      // [blocks, 16] nanoseconds, -DMOE_TRACE builds only
  float act_alpha, act_beta, act_limit;  // swiglu_clamped
  int counter_words;
  int combined;  // counters of finished tiles for each 256 columns of y; 0: combine_kernel sums
  int tensor;  // fp8_tensor: four counters: the amax of h, blocks past the gate/up phase, amax and
               // rows
  int tile_capacity;  // token tiles that fit in the counters
  int tokens;
  int row_pitch;
  int chunk_tokens;  // tokens for each prepare block
  int early_stages;  // stages of weights asked for before prepare's rows are known to be ready
  int self_count;    // 1: pairs <= kSelfCountPairs
};

}  // namespace moe
