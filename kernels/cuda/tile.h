// The CUDA backend's configuration as a typed aggregate.
#pragma once

namespace moegauge::cuda {

struct TileConfig {
  int token_tile = 0;    // BLOCK_SIZE_M: tokens of a tile
  int stages = 0;        // num_stages: depth of the ring of K steps of 128 bytes
  bool split_k = false;  // SPLIT_K 1: a tile's K steps may be cut between blocks
  bool swap_ab = false;  // SWAP_AB 1: weights are the matrix instruction's 64-row side
  int cluster = 1;       // CLUSTER_SIZE: blocks that share what they both read, 1 or 2
  int dealt = 1;         // DEALT: units a block is given in turn before it draws more by itself
  bool promote = false;  // PROMOTE 1: sums go over to fp32 registers every 128 of K (FP8)

  friend bool operator==(const TileConfig&, const TileConfig&) = default;
};

// Few rows an expert: weights on the 64-row side, a tile's K steps cut between blocks.
constexpr TileConfig split_tile(int tokens, int dealt, bool promote) {
  return {.token_tile = tokens,
          .stages = 4,
          .split_k = true,
          .swap_ab = true,
          .dealt = dealt,
          .promote = promote};
}
// More: the same side, tiles whole.
constexpr TileConfig whole_tile(int tokens, bool promote) {
  return {.token_tile = tokens, .stages = 4, .swap_ab = true, .promote = promote};
}
// And by two blocks, which share the weights for two tiles of an expert's tokens.
constexpr TileConfig paired_tile(int tokens, bool promote) {
  return {.token_tile = tokens, .stages = 4, .swap_ab = true, .cluster = 2, .promote = promote};
}
// Integer weights, whose chunks are smaller than other weights' steps: more of them in flight, and
// all units dealt, so that no block draws two long ones last.
constexpr TileConfig integer_tile(int tokens, int stages) {
  return {.token_tile = tokens, .stages = stages, .split_k = true, .swap_ab = true, .dealt = 1000};
}
constexpr TileConfig integer_whole_tile(int tokens, int stages, int dealt) {
  return {.token_tile = tokens, .stages = stages, .swap_ab = true, .dealt = dealt};
}
// Many: tokens on the 64-row side.
constexpr TileConfig token_rows_tile(int cluster, bool promote) {
  return {.token_tile = 128, .stages = 4, .cluster = cluster, .promote = promote};
}

// What a scheme's kernels use where no tuned file says otherwise, for at most `rows` rows an
// expert.
struct DefaultTile {
  double rows;
  TileConfig tile;
};

}  // namespace moegauge::cuda
