// A layer's weights on the device, packed as the kernels read them, in several copies for
// cold-weight rotation.
#pragma once

#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/schemes/cuda_scheme.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cuda {

struct WeightSet {
  Buffer w13, w2;              // chunks, see device/box_layout.h and device/int_layout.h
  Buffer w13_scale, w2_scale;  // as box_packing.h says, expert after expert; empty without scales
  Buffer w13_bias, w2_bias;    // fp32, as WeightScales::channels; empty without biases
  Buffer tensor_scale = {};    // TensorScale::given: of x and of h
  Buffer x_order;              // act_order: uint16 [E, K], see int_packing.h
};

// Asks `experts` for one expert at a time. Throws CudaFault.
std::vector<WeightSet> upload_weights(const Problem& problem, const CudaScheme& scheme,
                                      const ExpertSource& experts, int sets, const Stream& stream);

// Bytes of one set.
std::int64_t weight_set_bytes(const Problem& problem, const CudaScheme& scheme);

}  // namespace moegauge::cuda
