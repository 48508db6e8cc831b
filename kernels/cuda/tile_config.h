// The CUDA backend's configuration as a typed aggregate.
#pragma once

#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

struct TileConfig {
  int token_tile = 0;    // BLOCK_SIZE_M: tokens of a tile
  int stages = 0;        // num_stages: depth of the ring of K steps of 128 bytes
  bool split_k = false;  // SPLIT_K 1: a tile's K steps may be cut between blocks
  bool swap_ab = false;  // SWAP_AB 1: weights are the matrix instruction's 64-row side
  int cluster = 1;       // CLUSTER_SIZE: blocks that share what they both read, 1 or 2
  bool promote = false;  // PROMOTE 1: sums go over to fp32 registers every 128 of K (FP8)

  friend bool operator==(const TileConfig&, const TileConfig&) = default;
};

// What is used where no tuned file says otherwise.
TileConfig heuristic_config(const Layer& layer, const CudaScheme& scheme, std::int64_t tokens);

Config to_config(const TileConfig& config);

// Reads `config`; keys that it does not have come from heuristic_config. Refuses what the kernels
// do not have or the shared memory of a block (`shared_limit` bytes) does not hold, with the
// numbers.
Expected<TileConfig, Refusal> parse_config(const Config& config, const Layer& layer,
                                           const CudaScheme& scheme, std::int64_t tokens,
                                           std::int64_t shared_limit);

// Dynamic shared memory of the layer kernel: what LayerConfig::kSharedBytes is in
// kernels/cuda/device/config.cuh. The compiled program asserts that the two agree.
std::int64_t shared_bytes(const Layer& layer, const CudaScheme& scheme, const TileConfig& config);

}  // namespace moegauge::cuda
