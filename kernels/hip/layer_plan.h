// A layer on a processor: its weights packed and resident, and plans that launch the kernels.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/hip/processor.h"
#include "kernels/hip/tile_config.h"

namespace moegauge::hip {

// What a layer of `tokens` rows launches, in order; nothing for 0 tokens.
std::vector<KernelLaunch> layer_launches(const Architecture& architecture,
                                         const LayerFormat& format, const Layer& layer,
                                         const Tile& tile, std::int64_t tokens);

// Bytes of one set of weights, as resident.
std::int64_t weight_set_bytes(const Problem& problem, const LayerFormat& format);

// `code`: a hash of what the kernels were compiled from. Throws HipFault.
std::unique_ptr<LoadedLayer> load_layer(std::shared_ptr<const Processor> processor,
                                        const Problem& problem, const LayerFormat& format,
                                        const ExpertSource& experts, int sets, std::string code);

}  // namespace moegauge::hip
