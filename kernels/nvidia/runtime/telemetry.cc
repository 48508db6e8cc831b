#include "kernels/nvidia/runtime/telemetry.h"

#include <unistd.h>

#include <array>

namespace moegauge::cuda {
namespace {

// The few declarations of NVML that are used, from its API reference (r580); the toolkit does not
// always bring nvml.h, and the ABI of versioned entry points is fixed.
using Return = int;
constexpr Return success = 0;
constexpr Return insufficient_size = 7;
constexpr int clock_sm = 1, clock_memory = 2;
constexpr int temperature_gpu = 0;

struct ProcessInfo {  // nvmlProcessInfo_t of the _v3 calls
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

struct Nvml {
  Return (*init)();
  Return (*handle_by_pci)(const char*, void**);
  Return (*clock)(void*, int, unsigned*);
  Return (*power_milliwatts)(void*, unsigned*);
  Return (*temperature)(void*, int, unsigned*);
  Return (*throttle_reasons)(void*, unsigned long long*);
  Return (*processes)(void*, unsigned*, ProcessInfo*);
};

Expected<Nvml, Missing> open_nvml() {
  static constexpr std::array names = {"libnvidia-ml.so.1"};
  static Expected<SharedLibrary, Missing> library = SharedLibrary::open("NVML", names);
  if (!library) return Unexpected{library.error()};
  Nvml n = {};
  const bool whole =
      library->find("nvmlInit_v2", n.init) &&
      library->find("nvmlDeviceGetHandleByPciBusId_v2", n.handle_by_pci) &&
      library->find("nvmlDeviceGetClockInfo", n.clock) &&
      library->find("nvmlDeviceGetPowerUsage", n.power_milliwatts) &&
      library->find("nvmlDeviceGetTemperature", n.temperature) &&
      library->find("nvmlDeviceGetCurrentClocksThrottleReasons", n.throttle_reasons) &&
      library->find("nvmlDeviceGetComputeRunningProcesses_v3", n.processes);
  if (!whole) return Unexpected{Missing{"NVML too old (libnvidia-ml.so.1 lacks a call of r510)"}};
  if (const Return result = n.init(); result != success) {
    return Unexpected{Missing{"NVML does not start (error " + std::to_string(result) + ")"}};
  }
  return n;
}

const Expected<Nvml, Missing>& nvml() {
  static const Expected<Nvml, Missing> opened = open_nvml();
  return opened;
}

}  // namespace

std::vector<std::string> throttle_reason_names(unsigned long long bits) {
  // Bit values: nvmlClocksEventReasons in the API reference. Idle (0x1) and application clocks
  // (0x2) are how the card was set, not something that happened to it.
  static constexpr std::array<std::pair<unsigned long long, const char*>, 7> names = {{
      {0x4, "software power cap"},
      {0x8, "hardware slowdown"},
      {0x10, "sync boost"},
      {0x20, "software thermal slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "hardware power brake"},
      {0x100, "display clock setting"},
  }};
  std::vector<std::string> out;
  for (const auto& [bit, name] : names) {
    if ((bits & bit) != 0) out.emplace_back(name);
  }
  return out;
}

Expected<Telemetry, Missing> Telemetry::open(const std::string& pci_bus_id) {
  if (!nvml()) return Unexpected{nvml().error()};
  void* device = nullptr;
  if (const Return result = nvml()->handle_by_pci(pci_bus_id.c_str(), &device); result != success) {
    return Unexpected{
        Missing{"NVML knows no device " + pci_bus_id + " (error " + std::to_string(result) + ")"}};
  }
  return Telemetry(device);
}

DeviceState Telemetry::state() const {
  const Nvml& n = *nvml();
  DeviceState state;
  unsigned value = 0;
  if (n.clock(device_, clock_sm, &value) == success) state.clock_mhz = value;
  if (n.clock(device_, clock_memory, &value) == success) state.memory_clock_mhz = value;
  if (n.power_milliwatts(device_, &value) == success) state.power_watts = value * 1e-3;
  if (n.temperature(device_, temperature_gpu, &value) == success) state.temperature_celsius = value;
  unsigned long long bits = 0;
  if (n.throttle_reasons(device_, &bits) == success) {
    state.throttle_reasons = throttle_reason_names(bits);
  }
  return state;
}

std::optional<std::vector<unsigned>> Telemetry::other_processes() const {
  std::vector<ProcessInfo> found(16);
  unsigned count = static_cast<unsigned>(found.size());
  Return result = nvml()->processes(device_, &count, found.data());
  if (result == insufficient_size) {
    found.resize(count + 8);
    count = static_cast<unsigned>(found.size());
    result = nvml()->processes(device_, &count, found.data());
  }
  if (result != success) return std::nullopt;
  std::vector<unsigned> others;
  for (unsigned i = 0; i < count; ++i) {
    if (found[i].pid != static_cast<unsigned>(getpid())) others.push_back(found[i].pid);
  }
  return others;
}

}  // namespace moegauge::cuda
