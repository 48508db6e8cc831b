// Device memory of one plan, and the arguments that say where everything is.
#pragma once

#include <vector>

#include "kernels/hip/packing.h"
#include "kernels/hip/processor.h"
#include "kernels/hip/tile_config.h"

namespace moegauge::hip {

struct WeightSet {
  Buffer w13, w2, w13_scale, w2_scale, w13_bias, w2_bias;
};

// Inputs and output of one slot.
struct Slot {
  Buffer x, topk_ids, topk_weights, y;
};

// What is the same for all calls of a layer beside its weights.
struct LayerConstants {
  const Layer& layer;
  const LayerFormat& format;
  float fixed_x_scale = 0, fixed_h_scale = 0;  // of static schemes
  const int* expert_map = nullptr;             // on the device
};

class Workspace {
 public:
  Workspace(const Processor& processor, const LayerConstants& constants, const Tile& tile,
            std::int64_t tokens);
  // NaN in every floating-point format, -1 in integers.
  void poison() const;
  moe::LayerArgs bind(const Slot& slot, const WeightSet& weights) const;

 private:
  template <typename T>
  T* take(std::int64_t count);

  const Processor& processor_;
  std::vector<Buffer> buffers_;
  moe::LayerArgs args_ = {};
};

// Token tiles that may be needed: every expert may have one that is not full.
std::int64_t tile_capacity(const Layer& layer, std::int64_t tokens, std::int64_t tile_tokens);

}  // namespace moegauge::hip
