// Device memory of one plan beside its inputs and outputs, and the arguments that name it.
#pragma once

#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/device_weights.h"
#include "kernels/cuda/tile_config.h"
#include "kernels/nvidia/device/layer_args.h"
#include "kernels/nvidia/runtime/calls.h"

namespace moegauge::cuda {

class Workspace {
 public:
  Workspace(const Layer& layer, const CudaScheme& scheme, const TileConfig& config,
            std::int64_t tokens, const Stream& stream);

  // Every byte 0xff: NaN in fp32, bf16 and E4M3. Not the expert map and the kernels' own zeroed
  // words.
  void poison(const Stream& stream) const;

  // Arguments of a call that reads `slot` and `weights`.
  moe::LayerArgs bind(const Slot& slot, const WeightSet& weights) const;

 private:
  template <typename T>
  void take(T*& pointer, std::size_t bytes);

  const Layer layer_;
  const int element_bytes_;
  const unsigned token_box_;
  moe::LayerArgs args_ = {};
  std::vector<Buffer> scratch_;
  Buffer expert_map_, zeroed_;
};

}  // namespace moegauge::cuda
