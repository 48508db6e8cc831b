// A plan's memory on the device, and the arguments that name it.
#pragma once

#include <vector>

#include "kernels/backend.h"
#include "kernels/cublaslt/device/library_args.cuh"
#include "kernels/cublaslt/schemes/library_scheme.h"
#include "kernels/cublaslt/weights.h"
#include "kernels/nvidia/device/layer_args.h"
#include "kernels/nvidia/runtime/calls.h"

namespace moegauge::cublaslt {

class LayerBuffers {
 public:
  LayerBuffers(const Problem& problem, const LibraryScheme& scheme, std::int64_t tokens,
               const cuda::Stream& stream);

  // Every byte 0xff: NaN in fp32, bf16 and E4M3.
  void poison(const cuda::Stream& stream) const;

  moe::LayerArgs bind(const cuda::Slot& slot, const WeightSet& weights) const;
  const moe::LibraryArgs& gemm_args() const { return library_; }

  // The largest magnitudes of x and h, zeroed before each call.
  const cuda::Buffer& amax() const { return amax_; }
  const cuda::Buffer& workspace() const { return workspace_; }
  const cuda::Buffer& expert_rows() const { return scratch_[0]; }
  // One expert's matrix in 16 bits.
  const cuda::Buffer& dequantised() const { return dequantised_; }
  const cuda::Buffer& regrouped() const { return regrouped_; }

 private:
  template <typename T>
  void take(T*& pointer, std::int64_t bytes);

  const Layer layer_;
  moe::LayerArgs args_ = {};
  moe::LibraryArgs library_ = {};
  std::vector<cuda::Buffer> scratch_;
  cuda::Buffer dequantised_, regrouped_, workspace_, amax_, expert_map_;
};

}  // namespace moegauge::cublaslt
