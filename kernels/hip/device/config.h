// What is fixed when a kernel is compiled: the operands' format and the tile.
#pragma once
#include "kernels/hip/device/arch.h"
#include "kernels/hip/device/layer_args.h"

namespace moe {

// What the matrix instructions multiply, and where scales are applied.
enum class Format : int {
  bf16,
  fp16,
  block_fp8,    // a scale for each 128 x 128 of the weights and 1 x 128 of the tokens
  channel_fp8,  // one for each output channel and each token
  int8_channels,
};

// kTokens: tokens of a tile, the matrix instructions' columns. Weights are their rows: a block has
// kColumns gate rows and as many up rows, or 2 * kColumns of the down projection, spread over
// kWaves waves. kDim: rows and columns of one instruction. kDepth: steps of weights in registers.
template <class Arch_, Format kFormat_, int kTokens_, int kColumns_, int kWaves_, int kDim_,
          int kDepth_, bool kOnInput_>
struct LayerConfig {
  using Arch = Arch_;
  static constexpr Format kFormat = kFormat_;
  static constexpr int kTokens = kTokens_, kColumns = kColumns_, kWaves = kWaves_, kDim = kDim_,
                       kDepth = kDepth_;
  static constexpr bool kOnInput =
      kOnInput_;  // the router weight multiplies the first GEMM's output

  static constexpr int kLanes = Arch::kLanes;
  static constexpr int kThreads = kWaves * kLanes;
  static constexpr bool kBlockScales = kFormat == Format::block_fp8;
  static constexpr bool kChannelScales =
      kFormat == Format::channel_fp8 || kFormat == Format::int8_channels;
  static constexpr bool kHalf = kFormat == Format::bf16 || kFormat == Format::fp16;
  static constexpr int kElementBytes = kHalf ? 2 : 1;
  // Lanes with the same row of an operand: each holds kLaneChunks of a step's chunks.
  static constexpr int kGroups = kLanes / kDim;
  static constexpr int kLaneChunks = kChunks / kGroups;
  static constexpr int kSums = kDim * kDim / kLanes;           // a lane's share of a product
  static constexpr int kPairTiles = kColumns / kDim / kWaves;  // row tiles of a wave, in each half
  static constexpr int kTokenTiles = kTokens / kDim;
  // The first epilogue quantises where it sees every column of a unit of scale.
  static constexpr bool kQuantises = kBlockScales && kColumns == 128;
  // Otherwise activations go through memory, for blocks unrounded.
  static constexpr int kWideBytes = kBlockScales ? 4 : 2;

  static_assert(kPairTiles >= 1 && kPairTiles * kDim * kWaves == kColumns,
                "waves do not divide the tile's columns");
  static_assert(kTokens % kDim == 0 && kTokens <= kThreads, "tokens of a tile");
  static_assert(kColumns == 32 || kColumns == 64 || kColumns == 128, "columns of a tile");
  static_assert(kDim == 16 || (kDim == 32 && Arch::kMfma),
                "instructions of 16 rows, or MFMA's of 32");
};

}  // namespace moe
