// A layer's weights on the device, in canonical storage or packed as the scheme says, in several
// copies for cold-weight rotation.
#pragma once

#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

struct WeightSet {
  Buffer w13, w2;              // [E, 2N, K] and [E, K, N], the scheme's values; or packed
  Buffer w13_scale, w2_scale;  // the scheme's scales, expert after expert; empty without scales
  Buffer x_order;              // act_order: uint16 [E, K], see int_packing.h
};

// Asks `experts` for one expert at a time. Throws CudaFault.
std::vector<WeightSet> upload_weights(const Problem& problem, const CudaScheme& scheme,
                                      const ExpertSource& experts, int sets, const Stream& stream);

// Bytes of one set.
std::int64_t weight_set_bytes(const Problem& problem, const CudaScheme& scheme);

}  // namespace moegauge::cuda
