// A layer on the device whose GEMMs are the library's, one for each expert that has rows.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cublaslt/schemes/library_scheme.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cublaslt {

// Where the kernels around the GEMMs round, and the GEMMs themselves.
Numerics numerics_of(const Layer& layer, const LibraryScheme& scheme);

// Rows of each local expert.
std::vector<std::int32_t> count_rows(const Layer& layer, std::span<const std::int32_t> topk_ids);

// Uploads `sets` copies of the weights to `gpu`. Throws CudaFault.
std::unique_ptr<LoadedLayer> load_layer(const cuda::Gpu& gpu, const Problem& problem,
                                        const LibraryScheme& scheme, const ExpertSource& experts,
                                        int sets);

}  // namespace moegauge::cublaslt
