// A layer on the device, and plans for one number of tokens and one configuration.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/device_weights.h"
#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

// Uploads `sets` copies of the weights to `gpu`. Throws CudaFault.
std::unique_ptr<LoadedLayer> load_layer(const Gpu& gpu, const Problem& problem,
                                        const CudaScheme& scheme, const ExpertSource& experts,
                                        int sets);

}  // namespace moegauge::cuda
