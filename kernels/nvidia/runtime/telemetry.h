// What the GPU says about itself while it is measured (NVML, opened at run time).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/nvidia/runtime/shared_library.h"

namespace moegauge::cuda {

class Telemetry {
 public:
  // `pci_bus_id`: as cuDeviceGetPCIBusId gives it, so that CUDA's order of devices does not matter.
  static Expected<Telemetry, Missing> open(const std::string& pci_bus_id);

  DeviceState state() const;
  // Processes other than this one that compute on the GPU; nothing where NVML does not tell.
  std::optional<std::vector<unsigned>> other_processes() const;

 private:
  explicit Telemetry(void* device) : device_(device) {}
  void* device_ = nullptr;
};

// Names of the bits of nvmlDeviceGetCurrentClocksEventReasons that slow a kernel down.
std::vector<std::string> throttle_reason_names(unsigned long long bits);

}  // namespace moegauge::cuda
