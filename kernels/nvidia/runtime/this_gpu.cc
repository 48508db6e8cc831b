#include "kernels/nvidia/runtime/this_gpu.h"

#include <algorithm>

#include "kernels/nvidia/runtime/compiler.h"
#include "kernels/nvidia/runtime/telemetry.h"

namespace moegauge::cuda {
namespace {

Expected<const Gpu*, Missing> find_gpu() {
  if (!driver()) return Unexpected{driver().error()};
  int count = 0;
  if (const CUresult result = driver()->device_get_count(&count);
      result != CUDA_SUCCESS || count == 0) {
    return Unexpected{Missing{"driver without a device"}};
  }
  if (const auto compiler = compiler_version(); !compiler) return Unexpected{compiler.error()};
  const Gpu* gpu = nullptr;
  if (const auto fault = guarded([&] { gpu = &Gpu::get(0); })) {
    return Unexpected{Missing{fault->sentence}};
  }
  return gpu;
}

}  // namespace

const Expected<const Gpu*, Missing>& this_gpu() {
  static const Expected<const Gpu*, Missing> found = find_gpu();
  return found;
}

Availability hopper_availability() {
  if (!this_gpu()) {
    return {.present = false,
            .detail = this_gpu().error().sentence,
            .remedy =
                "an NVIDIA driver (libcuda.so.1), a device, and the CUDA toolkit's NVRTC "
                "(libnvrtc.so) on the loader's path"};
  }
  const Gpu& gpu = **this_gpu();
  if (const int capability = gpu.compute_capability(); capability != 90) {
    return {.present = false,
            .detail = gpu.name() + " has compute capability " + std::to_string(capability / 10) +
                      "." + std::to_string(capability % 10),
            .remedy =
                "a device of compute capability 9.0 (Hopper); the kernels use "
                "instructions that no other has"};
  }
  return {.present = true, .detail = gpu.name() + ", " + *compiler_version()};
}

Device this_device() {
  if (!this_gpu()) return {};
  const Gpu& gpu = **this_gpu();
  std::string name = gpu.name();
  std::ranges::replace(name, ' ', '_');
  return {.name = name,
          .arch = "sm_" + std::to_string(gpu.compute_capability()),
          .memory_bytes = gpu.memory_bytes(),
          .last_level_cache_bytes = gpu.l2_bytes(),
          .units = gpu.multiprocessors()};
}

std::vector<unsigned> other_processes_on_gpu() {
  if (!this_gpu()) return {};
  const auto telemetry = Telemetry::open((*this_gpu())->pci_bus_id());
  if (!telemetry) return {};
  return telemetry->other_processes().value_or(std::vector<unsigned>{});
}

std::map<std::string, std::string> compiler_and_driver() {
  std::map<std::string, std::string> versions;
  if (const auto compiler = compiler_version()) versions["compiler"] = *compiler;
  int version = 0;  // 12080 is CUDA 12.8
  if (driver() && driver()->driver_get_version(&version) == CUDA_SUCCESS) {
    versions["driver"] =
        "cuda " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  return versions;
}

std::optional<DeviceState> state_of(const Gpu& gpu) {
  static const auto telemetry = Telemetry::open(gpu.pci_bus_id());
  if (!telemetry) return std::nullopt;
  return telemetry->state();
}

}  // namespace moegauge::cuda
