// Tile configurations: defaults, the keys of config files, and what the device can hold.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/schemes/cuda_scheme.h"
#include "kernels/cuda/tile.h"

namespace moegauge::cuda {

// What is used where no tuned file says otherwise.
TileConfig heuristic_config(const Layer& layer, const CudaScheme& scheme, std::int64_t tokens);

Config to_config(const TileConfig& config);

// Reads `config`; keys that it does not have come from heuristic_config. Refuses what the kernels
// do not have or the shared memory of a block (`shared_limit` bytes) does not hold, with the
// numbers.
Expected<TileConfig, Refusal> parse_config(const Config& config, const Layer& layer,
                                           const CudaScheme& scheme, std::int64_t tokens,
                                           std::int64_t shared_limit);

// Every tile that parse_config lets pass and that promotes its sums where heuristic_config's does,
// those that differ least from it first.
std::vector<TileConfig> candidate_tiles(const Layer& layer, const CudaScheme& scheme,
                                        std::int64_t tokens, std::int64_t shared_limit);

// Dynamic shared memory of the layer kernel: what LayerConfig::kSharedBytes is in
// kernels/nvidia/device/config.cuh. The compiled program asserts that the two agree.
std::int64_t shared_bytes(const Layer& layer, const CudaScheme& scheme, const TileConfig& config);

// Tokens up to which the layer kernel can be the whole layer, and the shared memory that it asks
// for then: LayerConfig::kAloneMost and kAloneBytes.
struct AloneRoom {
  std::int64_t tokens = 0, shared_bytes = 0;
};
AloneRoom alone_room(const Layer& layer, const CudaScheme& scheme, const TileConfig& config);

// Whether it is, for so many tokens.
bool is_alone(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
              std::int64_t tokens);
std::int64_t shared_bytes_of_launch(const Layer& layer, const CudaScheme& scheme,
                                    const TileConfig& config, std::int64_t tokens);

}  // namespace moegauge::cuda
