#pragma once
#include <utility>

#include "kernels/cuda/bench/bench.h"

namespace bench {

moe::TensorMap make_map(void* base, bool fp8, uint64_t rows, uint64_t columns, uint32_t box_rows,
                        CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

struct Workspace {
  Workspace(const Layer&, int max_tokens, int blocks, int max_tile);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  void poison() const;  // every byte 0xff: NaN in fp32, bf16 and E4M3
  moe::LayerArgs bind(const Weights&, const Call&, const int* expert_map, const Variant&) const;

  Layer layer;
  moe::LayerArgs args{};
  int row_pitch = 0;
  size_t zeroed_bytes = 0;
  std::vector<std::pair<void*, size_t>> buffers;
};

}  // namespace bench
