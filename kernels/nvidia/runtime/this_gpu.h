// The GPU that a backend computes on, and what it tells about itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/nvidia/runtime/device.h"
#include "kernels/nvidia/runtime/shared_library.h"

namespace moegauge::cuda {

// The first device, once a driver and NVRTC are there too; or the first thing that is missing.
const Expected<const Gpu*, Missing>& this_gpu();

// Of kernels with Hopper's instructions: whether this GPU can run them.
Availability hopper_availability();
// What baselines are kept under; nothing in it where there is no GPU.
Device this_device();
// Backend::other_processes and Backend::toolchain.
std::vector<unsigned> other_processes_on_gpu();
std::map<std::string, std::string> compiler_and_driver();
// Runnable::state.
std::optional<DeviceState> state_of(const Gpu& gpu);

}  // namespace moegauge::cuda
