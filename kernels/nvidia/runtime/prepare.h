// The first stage of a layer, which every backend here begins with: pairs grouped by expert, each
// token quantised and written to its rows (device/prepare.cuh). What it refuses, and how it is
// launched.
#pragma once

#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/nvidia/device/layer_args.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cuda {

// Enumerator of moe::Activation (device/config.cuh), without its scope.
const char* activation_enumerator(ActivationKind kind);

Refusal shape_refusal(const char* what, std::int64_t value, const char* rule);
// Layers that no kernel may serve, and shapes that the prepare kernel does not hold.
std::optional<Refusal> refuses_router_weight(const Layer& layer);
std::optional<Refusal> refuses_prepare(const Layer& layer, int element_bytes);

// The fields that decide the launches.
void set_prepare_sizes(moe::LayerArgs& args, const Layer& layer, std::int64_t tokens);

struct PrepareKernels {
  const Kernel *count, *prepare;
  const Kernel* amax = nullptr;  // where one scale depends on all of x
  bool overlapping = true;       // each may start before the one ahead of it ends
};
// For at least one token.
void launch_prepare(const PrepareKernels& kernels, const moe::LayerArgs& args, const Gpu& gpu,
                    const Stream& stream);

}  // namespace moegauge::cuda
