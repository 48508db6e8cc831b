// What is fixed when a kernel is compiled: the layer's shape, its scheme and
// the tile configuration; and the arguments that change from call to call.
#pragma once
#include "kernels/nvidia/device/box_layout.h"
#include "kernels/nvidia/device/half.cuh"
#include "kernels/nvidia/device/int_layout.h"
#include "kernels/nvidia/device/layer_args.h"
#include "kernels/nvidia/device/ptx.cuh"

namespace moe {

enum class Scheme { fp8_block, fp8_ptpc, half, w4a16, w8a16, fp8_tensor, fp8_tensor_static, mxfp8, mxfp8_floor, w8a8_int8, e2m1 };
enum class Activation { silu, gelu, gelu_tanh, swiglu_clamped };

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
__host__ __device__ constexpr int smallest(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int align_up(int a, int b) { return ceil_div(a, b) * b; }

// kTokenTile: tokens in a tile, wgmma's N. Weights are wgmma's M: a tile has 256
// weight rows, as two boxes of 128 (gate and up, or two halves of the down
// projection); math warpgroup w takes rows 64w..64w+63 of each box.
template <Scheme kScheme_, int kExperts_, int kHidden_, int kInter_, int kTopK_, bool kWeightOnInput_,
          int kTokenTile_, int kStages_, bool kPromote_, bool kSplit_, bool kTokenRows_ = false, bool kPairs_ = false,
          int kDealt_ = 1, int kGroup_ = 0, bool kZeroPoints_ = false, bool kOrdered_ = false,
          Activation kActivation_ = Activation::silu, bool kBias_ = false, bool kFineScales_ = false, bool kFp16_ = false,
          bool kAlone_ = false>
struct LayerConfig {
  // The same, compiled for few pairs: this kernel is the whole layer, see alone.cuh.
  static constexpr bool kAlone = kAlone_;
  using WhenAlone = LayerConfig<kScheme_, kExperts_, kHidden_, kInter_, kTopK_, kWeightOnInput_, kTokenTile_, kStages_, kPromote_, kSplit_,
                                kTokenRows_, kPairs_, kDealt_, kGroup_, kZeroPoints_, kOrdered_, kActivation_, kBias_, kFineScales_, kFp16_, true>;
  static constexpr Scheme kScheme = kScheme_;
  // The layer's 16-bit type: of x and y, and of what waits between the projections.
  static constexpr bool kFp16 = kFp16_;
  using H = Half<kFp16>;
  static constexpr int kExperts = kExperts_;  // local
  static constexpr int kHidden = kHidden_;    // K
  static constexpr int kInter = kInter_;      // N
  static constexpr int kTopK = kTopK_;
  static constexpr bool kWeightOnInput = kWeightOnInput_;
  static constexpr int kTokenTile = kTokenTile_;
  static constexpr int kStages = kStages_;
  // True: tokens are wgmma's M side (many tokens an expert), see token_rows.cuh.
  static constexpr bool kTokenRows = kTokenRows_;
  // Clusters of two blocks that share what they both read, see schedule.cuh.
  static constexpr bool kPairs = kPairs_;
  // Units each block is dealt in turn before it draws more from the counter.
  static constexpr int kDealt = kDealt_;
  static constexpr int kTokenBox = kTokenRows ? 64 : kTokenTile;  // rows of the token tensor maps' boxes
  // Microscaling: E8M0 scales of a row's (or token's) 32 columns; floor: of the rule for activations.
  static constexpr bool kMxFloor = kScheme == Scheme::mxfp8_floor, kMx = kScheme == Scheme::mxfp8 || kMxFloor;
  // Scales that change along K, every kUnit columns.
  static constexpr bool kBlockScales = kScheme == Scheme::fp8_block || kMx;
  static constexpr int kUnit = kMx ? kMxUnit : 128;
  // One scale for all of x and one for all of h: given, or from the largest magnitude in the call.
  static constexpr bool kTensorGiven = kScheme == Scheme::fp8_tensor_static, kTensorAmax = kScheme == Scheme::fp8_tensor;
  // int8 on both sides, summed as integers.
  static constexpr bool kInt8 = kScheme == Scheme::w8a8_int8;
  static constexpr bool kChannelScales = kScheme == Scheme::fp8_ptpc || kTensorGiven || kTensorAmax || kInt8;
  static constexpr bool kFp8 = (kBlockScales || kChannelScales) && !kInt8;
  // Weights of few bits with a 16-bit scale for each row and kGroup columns, turned into the layer's
  // 16-bit type in registers, see integers.cuh; 0 bits: none. kE2m1: floats of four bits.
  static constexpr bool kE2m1 = kScheme == Scheme::e2m1;
  static constexpr int kIntBits = kScheme == Scheme::w4a16 || kE2m1 ? 4 : kScheme == Scheme::w8a16 ? 8 : 0;
  static constexpr int kGroup = kGroup_;
  static constexpr bool kZeroPoints = kZeroPoints_;
  // The columns of w13 were sorted by group when it was packed, for each expert in its own order;
  // rows of x_rows are gathered in that order.
  static constexpr bool kOrdered = kOrdered_;
  static constexpr Activation kActivation = kActivation_;
  // Biases of both projections, fp32, added after the scales.
  static constexpr bool kBias = kBias_;
  // Block scales that change inside a warpgroup's 64 weight rows: one for each 8.
  static constexpr bool kFineScales = kFineScales_;
  static constexpr int kScaleGroups = kMx ? 0 : kFineScales ? 32 : 4;  // of a weight tile and step; kMx: in its chunk
  // fp32 sums every 128 of K instead of in the tensor core (FP8 only).
  static constexpr bool kPromote = kPromote_;
  // Whether a tile's K steps may be cut between blocks, see schedule.cuh.
  static constexpr bool kSplit = kSplit_;
  // With one choice per token the second epilogue writes y itself.
  static constexpr bool kDirect = kTopK == 1;

  static constexpr int kElementBytes = kFp8 || kInt8 ? 1 : 2;
  static constexpr int kStep = kIntBits != 0 ? kIntStep : 128 / kElementBytes;  // elements of K in a stage
  static constexpr int kUnits = kStep / kUnit;  // of a stage
  static constexpr int kSteps1 = ceil_div(kHidden, kStep), kSteps2 = ceil_div(kInter, kStep);
  static constexpr int kWeightTiles1 = ceil_div(kInter, 128), kWeightTiles2 = ceil_div(kHidden, 256);
  static constexpr int kScaleCols1 = ceil_div(kHidden, 128), kScaleCols2 = ceil_div(kInter, 128);

  static constexpr int kWeightBytes =
      kIntBits != 0 ? int_chunk_bytes(kIntBits, kGroup != 0 ? kGroup : kIntStep, kZeroPoints) : kChunkBytes + (kMx ? kMxScaleBytes : 0);
  static constexpr int kTokenBoxes = kStep * kElementBytes / 128;  // of 128 bytes a token
  static constexpr int kTokenBytes = kTokenTile * 128 * kTokenBoxes;
  static constexpr int kTokenOffset = align_up(kWeightBytes, 1024);
  static constexpr int kStageBytes = kTokenOffset + kTokenBytes;
  // Per stage: weight scales (box, warpgroup; or box, warpgroup, warp, 8 rows), then one for each unit and token.
  static constexpr int kTokenScales = kScaleGroups * 4;
  static constexpr int kScaleBytes = kBlockScales ? align_up(kTokenScales + kUnits * kTokenTile * 4, 16) : 0;
  // Epilogue: staging, column factors, reciprocal scales, 8 warps' column maxima, kMx: reciprocals of 4 units.
  static constexpr int kStageTokens = kTokenTile < 64 ? kTokenTile : 64;
  static constexpr int kQuantPitch = 144;  // bytes a token in the FP8 staging, 16-aligned, conflict-free
  static constexpr int kStagingBytes =
      (kBlockScales || kTokenRows) && kTokenTile * kQuantPitch > 2 * kStageTokens * 128 ? kTokenTile * kQuantPitch
                                                                                        : 2 * kStageTokens * 128;
  // Arrivals after which the rows of a token tile may be read by phase 1.
  static constexpr int kReadyCount = (kChannelScales ? 1 : kWeightTiles1) * (kTokenRows ? 2 : 1);
  static constexpr int kColumnBytes = kTokenTile * 4;
  static constexpr int kEpilogueBytes = kStagingBytes + 3 * kColumnBytes + (kMx ? 12 * kColumnBytes : kBlockScales ? 8 * kColumnBytes : 0);
  static constexpr int kTableBytes = align_up((kExperts + 1) * 12 + 24, 16);  // and flags, whole tiles, part counts: two each

  static constexpr int kEpilogueOffset = kStages * kStageBytes;
  static constexpr int kScaleOffset = kEpilogueOffset + align_up(kEpilogueBytes, 16);
  static constexpr int kTableOffset = kScaleOffset + kStages * kScaleBytes;
  static constexpr int kBarrierOffset = kTableOffset + kTableBytes;
  // Two segments in flight from the scheduling warp, 64 bytes each, behind the
  // barriers of the stages, and their own barriers.
  static constexpr int kQueueOffset = align_up(kBarrierOffset + kStages * 16, 64);
  // Pairs: two words and their barriers, by which the first block tells the second
  // which unit it drew.
  static constexpr int kMailOffset = kQueueOffset + 2 * 64 + 2 * 16;
  // And a barrier a stage: the other block has it free.
  static constexpr int kPeerOffset = kMailOffset + 2 * 16;
  static constexpr int kSharedBytes = kPeerOffset + (kPairs ? kStages * 8 : 0) + 1024;  // 1024: to align the base

  // Alone: behind all that, step by step as they are multiplied, the codes of a tile's rows of h (one scale a
  // row only) and all tokens, who are the columns of every tile of the first projection; then tables of pairs
  // and scales.
  static constexpr int kAloneOffset = align_up(kSharedBytes - 1024, 1024);
  static constexpr int kAloneScales = kBlockScales ? kSteps1 * kUnits : kChannelScales ? 1 : 0;  // a token
  static constexpr int kAloneWide = kChannelScales ? kSteps2 * kTokenBytes : 0;
  static constexpr int kAloneX = kSteps1 * kTokenBytes;
  static constexpr int kAloneBytes =
      kAloneOffset + 1024 + kAloneWide + kAloneX + 4 * kInsidePairs * 4 + 64 + kTokenTile * 4 + kAloneTokens * kAloneScales * 4;
  static constexpr bool kAlonePossible = !kTokenRows && !kPairs && !kOrdered && !kTensorAmax && kTokenTile <= 16;
  static constexpr int kAloneMost = !kAlonePossible || kAloneBytes > kSharedLimit ? 0 : smallest(kAloneTokens, kAloneColumns / kHidden);

  static_assert(!kTokenRows || (kTokenTile == 128 && !kSplit), "token rows: tiles of 128 tokens, not cut");
  static_assert(!kAlone || kAloneMost > 0, "alone: no room for a token, or not for this kind of tile");
  static_assert(!kMx || (!kTokenRows && !kPairs && kTokenTile <= 64), "microscaling: weights are wgmma's M, tiles of at most 64 tokens");
  static_assert(!kTokenRows || !kBlockScales || (kInter % 128 == 0 && !kFineScales), "token rows: a box of 128 weight rows has one scale");
  static_assert(!kSplit || kTokenTile <= 64, "partial sums are for tiles of at most 64 tokens");
  static_assert(!kPairs || (!kSplit && kIntBits == 0 && kWeightTiles1 % 2 == 0 && kWeightTiles2 % 2 == 0),
                "pairs need whole tiles, weights that are not integers and even numbers of weight tiles");
  static_assert(kInter % 64 == 0, "N must be a multiple of 64: a warpgroup's rows share one scale block");
  static_assert(kHidden % 16 == 0 && kHidden % 8 == 0, "K must be a multiple of 16 for 16-byte rows");
  static_assert(kSharedBytes <= kSharedLimit, "stages and tile exceed the 232448 bytes of shared memory of a block");
  static_assert(!kWeightOnInput || kTopK == 1, "router weight on input needs top_k = 1");
  static_assert(!kWeightOnInput || !kBias, "router weight on input is not defined with biases");
  static_assert(!kE2m1 || (kGroup == 32 && !kZeroPoints && !kOrdered), "E2M1 comes in groups of 32 columns");
  static_assert(!kPromote || kFp8, "promotion is for FP8");
  static_assert(kIntBits == 0 || kGroup == 32 || kGroup == 64 || kGroup == 128, "groups of 32, 64 or 128 columns");
  static_assert(kIntBits == 0 || (!kTokenRows && kTokenTile <= (kIntBits == 4 ? 96 : 80)),
                "integer weights are wgmma's M, with sums and a group's sums in registers for 96 (eight bits: 80) tokens");
  static_assert(kIntBits != 0 || (kGroup == 0 && !kZeroPoints && !kOrdered), "groups are for integer weights");
  static_assert(!kBlockScales || kPromote, "block scales need fp32 sums every 128 of K");
};

}  // namespace moe
