#include "kernels/nvidia/runtime/driver.h"

#include <array>
#include <vector>

namespace moegauge::cuda {
namespace {

// cuda.h renames functions by macro (cuMemAlloc -> cuMemAlloc_v2); expanding before quoting binds
// the symbol whose signature the header declares.
#define MOEGAUGE_QUOTE(name) #name
#define MOEGAUGE_SYMBOL(name) MOEGAUGE_QUOTE(name)
#define MOEGAUGE_BIND(member, name) \
  if (!library.find(MOEGAUGE_SYMBOL(name), d.member)) missing.push_back(MOEGAUGE_SYMBOL(name))

std::vector<std::string> bind(const SharedLibrary& library, Driver& d) {
  std::vector<std::string> missing;
  MOEGAUGE_BIND(init, cuInit);
  MOEGAUGE_BIND(driver_get_version, cuDriverGetVersion);
  MOEGAUGE_BIND(get_error_name, cuGetErrorName);
  MOEGAUGE_BIND(get_error_string, cuGetErrorString);
  MOEGAUGE_BIND(device_get_count, cuDeviceGetCount);
  MOEGAUGE_BIND(device_get, cuDeviceGet);
  MOEGAUGE_BIND(device_get_name, cuDeviceGetName);
  MOEGAUGE_BIND(device_get_attribute, cuDeviceGetAttribute);
  MOEGAUGE_BIND(device_total_mem, cuDeviceTotalMem);
  MOEGAUGE_BIND(primary_ctx_retain, cuDevicePrimaryCtxRetain);
  MOEGAUGE_BIND(ctx_set_current, cuCtxSetCurrent);
  MOEGAUGE_BIND(ctx_synchronize, cuCtxSynchronize);
  MOEGAUGE_BIND(mem_get_info, cuMemGetInfo);
  MOEGAUGE_BIND(mem_alloc, cuMemAlloc);
  MOEGAUGE_BIND(mem_free, cuMemFree);
  MOEGAUGE_BIND(memcpy_htod_async, cuMemcpyHtoDAsync);
  MOEGAUGE_BIND(memcpy_dtoh_async, cuMemcpyDtoHAsync);
  MOEGAUGE_BIND(memcpy_dtod_async, cuMemcpyDtoDAsync);
  MOEGAUGE_BIND(memset_d8_async, cuMemsetD8Async);
  MOEGAUGE_BIND(stream_create, cuStreamCreate);
  MOEGAUGE_BIND(stream_destroy, cuStreamDestroy);
  MOEGAUGE_BIND(stream_synchronize, cuStreamSynchronize);
  MOEGAUGE_BIND(stream_begin_capture, cuStreamBeginCapture);
  MOEGAUGE_BIND(stream_end_capture, cuStreamEndCapture);
  MOEGAUGE_BIND(event_create, cuEventCreate);
  MOEGAUGE_BIND(event_destroy, cuEventDestroy);
  MOEGAUGE_BIND(event_record, cuEventRecord);
  MOEGAUGE_BIND(event_synchronize, cuEventSynchronize);
  MOEGAUGE_BIND(event_elapsed_time, cuEventElapsedTime);
  MOEGAUGE_BIND(graph_instantiate, cuGraphInstantiateWithFlags);
  MOEGAUGE_BIND(graph_launch, cuGraphLaunch);
  MOEGAUGE_BIND(graph_destroy, cuGraphDestroy);
  MOEGAUGE_BIND(graph_exec_destroy, cuGraphExecDestroy);
  MOEGAUGE_BIND(module_load_data, cuModuleLoadData);
  MOEGAUGE_BIND(module_unload, cuModuleUnload);
  MOEGAUGE_BIND(module_get_function, cuModuleGetFunction);
  MOEGAUGE_BIND(func_set_attribute, cuFuncSetAttribute);
  MOEGAUGE_BIND(func_get_attribute, cuFuncGetAttribute);
  MOEGAUGE_BIND(launch_kernel_ex, cuLaunchKernelEx);
  MOEGAUGE_BIND(occupancy_max_active_clusters, cuOccupancyMaxActiveClusters);
  MOEGAUGE_BIND(tensor_map_encode_tiled, cuTensorMapEncodeTiled);
  MOEGAUGE_BIND(profiler_start, cuProfilerStart);
  MOEGAUGE_BIND(profiler_stop, cuProfilerStop);
  return missing;
}

#undef MOEGAUGE_BIND
#undef MOEGAUGE_SYMBOL
#undef MOEGAUGE_QUOTE

Expected<Driver, Missing> open_driver() {
  static constexpr std::array names = {"libcuda.so.1"};
  // Never closed: the driver keeps threads and exit handlers of its own.
  static Expected<SharedLibrary, Missing> library = SharedLibrary::open("driver", names);
  if (!library) return Unexpected{library.error()};
  Driver d = {};
  if (const auto missing = bind(*library, d); !missing.empty()) {
    return Unexpected{Missing{"driver too old (libcuda.so.1 lacks " + missing.front() +
                              "; CUDA 12.0 or later has it)"}};
  }
  if (const CUresult result = d.init(0); result != CUDA_SUCCESS) {
    return Unexpected{
        Missing{"driver does not start (" + fault_of(d, "cuInit", result).sentence + ")"}};
  }
  return d;
}

}  // namespace

const Expected<Driver, Missing>& driver() {
  static const Expected<Driver, Missing> opened = open_driver();
  return opened;
}

Fault fault_of(const Driver& driver, const char* call, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.get_error_name(result, &name);
  driver.get_error_string(result, &text);
  const FaultKind kind = result == CUDA_ERROR_OUT_OF_MEMORY ? FaultKind::out_of_memory
                         : result == CUDA_ERROR_NO_DEVICE ||
                                 result == CUDA_ERROR_DEVICE_UNAVAILABLE ||
                                 result == CUDA_ERROR_SYSTEM_NOT_READY
                             ? FaultKind::infrastructure
                             : FaultKind::error;
  return {kind, std::string(call) + ": " + (name != nullptr ? name : std::to_string(result)) +
                    (text != nullptr ? std::string(" (") + text + ")" : "")};
}

}  // namespace moegauge::cuda
