// The part of the CUDA driver API that this backend calls, bound at run time. Names and signatures
// are the toolkit's (cuda.h); the versioned symbols are the ones that cuda.h maps them to.
#pragma once

#include <cuda.h>

#include <string>

#include "kernels/backend.h"
#include "kernels/nvidia/runtime/shared_library.h"

namespace moegauge::cuda {

struct Driver {
  decltype(::cuInit)* init;
  decltype(::cuDriverGetVersion)* driver_get_version;
  decltype(::cuGetErrorName)* get_error_name;
  decltype(::cuGetErrorString)* get_error_string;
  decltype(::cuDeviceGetCount)* device_get_count;
  decltype(::cuDeviceGet)* device_get;
  decltype(::cuDeviceGetName)* device_get_name;
  decltype(::cuDeviceGetAttribute)* device_get_attribute;
  decltype(::cuDeviceTotalMem)* device_total_mem;
  decltype(::cuDevicePrimaryCtxRetain)* primary_ctx_retain;
  decltype(::cuCtxSetCurrent)* ctx_set_current;
  decltype(::cuCtxSynchronize)* ctx_synchronize;
  decltype(::cuMemGetInfo)* mem_get_info;
  decltype(::cuMemAlloc)* mem_alloc;
  decltype(::cuMemFree)* mem_free;
  decltype(::cuMemcpyHtoDAsync)* memcpy_htod_async;
  decltype(::cuMemcpyDtoHAsync)* memcpy_dtoh_async;
  decltype(::cuMemcpyDtoDAsync)* memcpy_dtod_async;
  decltype(::cuMemsetD8Async)* memset_d8_async;
  decltype(::cuStreamCreate)* stream_create;
  decltype(::cuStreamDestroy)* stream_destroy;
  decltype(::cuStreamSynchronize)* stream_synchronize;
  decltype(::cuStreamBeginCapture)* stream_begin_capture;
  decltype(::cuStreamEndCapture)* stream_end_capture;
  decltype(::cuEventCreate)* event_create;
  decltype(::cuEventDestroy)* event_destroy;
  decltype(::cuEventRecord)* event_record;
  decltype(::cuEventSynchronize)* event_synchronize;
  decltype(::cuEventElapsedTime)* event_elapsed_time;
  decltype(::cuGraphInstantiateWithFlags)* graph_instantiate;
  decltype(::cuGraphLaunch)* graph_launch;
  decltype(::cuGraphDestroy)* graph_destroy;
  decltype(::cuGraphExecDestroy)* graph_exec_destroy;
  decltype(::cuModuleLoadData)* module_load_data;
  decltype(::cuModuleUnload)* module_unload;
  decltype(::cuModuleGetFunction)* module_get_function;
  decltype(::cuFuncSetAttribute)* func_set_attribute;
  decltype(::cuFuncGetAttribute)* func_get_attribute;
  decltype(::cuLaunchKernelEx)* launch_kernel_ex;
  decltype(::cuOccupancyMaxActiveClusters)* occupancy_max_active_clusters;
  decltype(::cuTensorMapEncodeTiled)* tensor_map_encode_tiled;
  // Declared in cudaProfiler.h, which not every copy of the headers has.
  CUresult (*profiler_start)();
  CUresult (*profiler_stop)();
};

// Opened and initialised once per process; the reason where it cannot be.
const Expected<Driver, Missing>& driver();

// A fault for a failed call: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". Out of memory
// and a lost device have kinds of their own.
Fault fault_of(const Driver& driver, const char* call, CUresult result);

}  // namespace moegauge::cuda
