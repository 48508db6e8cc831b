// The part of the HIP runtime API that this backend calls, bound at run time: names, signatures and
// numbers are those of hip/hip_runtime_api.h, which is not needed to build. hip_api_test.cc
// compares them with that header where it is installed.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/backend.h"

namespace moegauge::hip {

using HipError = int;
inline constexpr HipError hip_success = 0, hip_out_of_memory = 2, hip_no_device = 100,
                          hip_no_binary_for_gpu = 209;
inline constexpr int hip_copy_to_device = 1, hip_copy_to_host = 2, hip_copy_on_device = 3;
inline constexpr unsigned hip_stream_non_blocking = 1;
inline constexpr int hip_capture_thread_local = 1;

// Opaque handles.
struct HipStreamHandle;
struct HipEventHandle;
struct HipModuleHandle;
struct HipFunctionHandle;
struct HipGraphHandle;
struct HipGraphExecHandle;

struct HipApi {
  HipError (*runtime_get_version)(int* version);
  const char* (*get_error_name)(HipError error);
  const char* (*get_error_string)(HipError error);
  HipError (*get_device_count)(int* count);
  HipError (*set_device)(int device);
  // Its structure has changed from release to release: see arch_of in gpu.cc.
  HipError (*get_device_properties)(void* properties, int device);
  HipError (*device_get_name)(char* name, int bytes, int device);
  HipError (*device_total_mem)(std::size_t* bytes, int device);
  HipError (*malloc)(void** memory, std::size_t bytes);
  HipError (*free)(void* memory);
  HipError (*memcpy_async)(void* to, const void* from, std::size_t bytes, int kind,
                           HipStreamHandle* stream);
  HipError (*memset_async)(void* to, int value, std::size_t bytes, HipStreamHandle* stream);
  HipError (*stream_create)(HipStreamHandle** stream, unsigned flags);
  HipError (*stream_destroy)(HipStreamHandle* stream);
  HipError (*stream_synchronize)(HipStreamHandle* stream);
  HipError (*stream_begin_capture)(HipStreamHandle* stream, int mode);
  HipError (*stream_end_capture)(HipStreamHandle* stream, HipGraphHandle** graph);
  HipError (*event_create)(HipEventHandle** event);
  HipError (*event_destroy)(HipEventHandle* event);
  HipError (*event_record)(HipEventHandle* event, HipStreamHandle* stream);
  HipError (*event_synchronize)(HipEventHandle* event);
  HipError (*event_elapsed_time)(float* milliseconds, HipEventHandle* begin, HipEventHandle* end);
  HipError (*graph_instantiate)(HipGraphExecHandle** exec, HipGraphHandle* graph, void* error_node,
                                char* log, std::size_t log_bytes);
  HipError (*graph_launch)(HipGraphExecHandle* exec, HipStreamHandle* stream);
  HipError (*graph_destroy)(HipGraphHandle* graph);
  HipError (*graph_exec_destroy)(HipGraphExecHandle* exec);
  HipError (*module_load_data)(HipModuleHandle** module, const void* image);
  HipError (*module_unload)(HipModuleHandle* module);
  HipError (*module_get_function)(HipFunctionHandle** function, HipModuleHandle* module,
                                  const char* name);
  HipError (*module_launch_kernel)(HipFunctionHandle* function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared_bytes, HipStreamHandle* stream,
                                   void** arguments, void** extra);
};

// Opened once per process; a sentence where it cannot be: "no runtime (libamdhip64.so not found)".
const Expected<HipApi, std::string>& hip_api();
// Binds the functions of an opened library; the name of the first one that it lacks.
std::optional<std::string> bind_hip_api(void* library, HipApi& api);

// "hipMalloc: hipErrorOutOfMemory (out of memory)". Out of memory and a lost device have kinds of
// their own.
Fault fault_of(const HipApi& api, const char* call, HipError error);

}  // namespace moegauge::hip
