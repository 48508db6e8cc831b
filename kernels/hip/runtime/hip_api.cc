#include "kernels/hip/runtime/hip_api.h"

#include <dlfcn.h>

#include <array>
#include <initializer_list>

namespace moegauge::hip {
namespace {

// The first of the names that the library has.
template <typename Function>
bool find(void* library, std::initializer_list<const char*> names, Function*& out) {
  for (const char* name : names) {
    out = reinterpret_cast<Function*>(dlsym(library, name));
    if (out != nullptr) return true;
  }
  return false;
}

Expected<HipApi, std::string> open_api() {
  // The development link, then the names of the releases.
  constexpr std::array names = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                "libamdhip64.so.5"};
  void* library = nullptr;
  std::string broken;
  for (const char* name : names) {
    // Never closed: the runtime keeps threads and exit handlers of its own.
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* said = dlerror();
    if (said != nullptr && std::string(said).find("No such file") == std::string::npos)
      broken = said;
  }
  if (library == nullptr) {
    return Unexpected{broken.empty() ? std::string("no runtime (libamdhip64.so not found)")
                                     : "no runtime (" + broken + ")"};
  }
  HipApi api = {};
  if (const auto missing = bind_hip_api(library, api))
    return Unexpected{"runtime too old (libamdhip64.so lacks " + *missing + "; ROCm 5.2 has it)"};
  return api;
}

}  // namespace

std::optional<std::string> bind_hip_api(void* library, HipApi& api) {
  std::optional<std::string> missing;
  const auto bind = [&](auto& member, const char* name, const char* before = nullptr) {
    const bool found =
        before == nullptr ? find(library, {name}, member) : find(library, {before, name}, member);
    if (!found && !missing) missing = name;
  };
  bind(api.runtime_get_version, "hipRuntimeGetVersion");
  bind(api.get_error_name, "hipGetErrorName");
  bind(api.get_error_string, "hipGetErrorString");
  bind(api.get_device_count, "hipGetDeviceCount");
  bind(api.set_device, "hipSetDevice");
  bind(api.get_device_properties, "hipGetDeviceProperties", "hipGetDevicePropertiesR0600");
  bind(api.device_get_name, "hipDeviceGetName");
  bind(api.device_total_mem, "hipDeviceTotalMem");
  bind(api.malloc, "hipMalloc");
  bind(api.free, "hipFree");
  bind(api.memcpy_async, "hipMemcpyAsync");
  bind(api.memset_async, "hipMemsetAsync");
  bind(api.stream_create, "hipStreamCreateWithFlags");
  bind(api.stream_destroy, "hipStreamDestroy");
  bind(api.stream_synchronize, "hipStreamSynchronize");
  bind(api.stream_begin_capture, "hipStreamBeginCapture");
  bind(api.stream_end_capture, "hipStreamEndCapture");
  bind(api.event_create, "hipEventCreate");
  bind(api.event_destroy, "hipEventDestroy");
  bind(api.event_record, "hipEventRecord");
  bind(api.event_synchronize, "hipEventSynchronize");
  bind(api.event_elapsed_time, "hipEventElapsedTime");
  bind(api.graph_instantiate, "hipGraphInstantiate");
  bind(api.graph_launch, "hipGraphLaunch");
  bind(api.graph_destroy, "hipGraphDestroy");
  bind(api.graph_exec_destroy, "hipGraphExecDestroy");
  bind(api.module_load_data, "hipModuleLoadData");
  bind(api.module_unload, "hipModuleUnload");
  bind(api.module_get_function, "hipModuleGetFunction");
  bind(api.module_launch_kernel, "hipModuleLaunchKernel");
  return missing;
}

const Expected<HipApi, std::string>& hip_api() {
  static const Expected<HipApi, std::string> opened = open_api();
  return opened;
}

Fault fault_of(const HipApi& api, const char* call, HipError error) {
  const char* name = api.get_error_name(error);
  const char* text = api.get_error_string(error);
  const FaultKind kind = error == hip_out_of_memory ? FaultKind::out_of_memory
                         : error == hip_no_device   ? FaultKind::infrastructure
                                                    : FaultKind::error;
  return {kind, std::string(call) + ": " + (name != nullptr ? name : std::to_string(error)) +
                    (text != nullptr ? std::string(" (") + text + ")" : "")};
}

}  // namespace moegauge::hip
