#include "kernels/nvidia/runtime/device.h"

#include <array>
#include <cstdio>
#include <map>
#include <mutex>

namespace moegauge::cuda {

const Driver& require_driver() {
  const auto& opened = driver();
  if (!opened) throw CudaFault({FaultKind::infrastructure, opened.error().sentence});
  return *opened;
}

void check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw CudaFault(fault_of(require_driver(), call, result));
}

namespace {

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(require_driver().device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

}  // namespace

Gpu::Gpu(int ordinal) {
  const Driver& d = require_driver();
  check(d.device_get(&device_, ordinal), "cuDeviceGet");
  std::array<char, 256> name = {};
  check(d.device_get_name(name.data(), name.size(), device_), "cuDeviceGetName");
  name_ = name.data();
  std::array<char, 32> bus = {};
  std::snprintf(bus.data(), bus.size(), "%08x:%02x:%02x.0",
                static_cast<unsigned>(attribute(device_, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)),
                static_cast<unsigned>(attribute(device_, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)),
                static_cast<unsigned>(attribute(device_, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)));
  pci_bus_id_ = bus.data();
  capability_ = 10 * attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                attribute(device_, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  multiprocessors_ = attribute(device_, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  l2_bytes_ = attribute(device_, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  shared_bytes_ = attribute(device_, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  std::size_t total = 0;
  check(d.device_total_mem(&total, device_), "cuDeviceTotalMem");
  memory_bytes_ = static_cast<std::int64_t>(total);
  check(d.primary_ctx_retain(&context_, device_), "cuDevicePrimaryCtxRetain");
}

const Gpu& Gpu::get(int ordinal) {
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Gpu>> gpus;  // never released: the process ends with them
  const std::lock_guard lock(mutex);
  auto& gpu = gpus[ordinal];
  if (gpu == nullptr) gpu.reset(new Gpu(ordinal));
  gpu->make_current();
  return *gpu;
}

void Gpu::make_current() const {
  check(require_driver().ctx_set_current(context_), "cuCtxSetCurrent");
}

std::int64_t Gpu::free_bytes() const {
  std::size_t free = 0, total = 0;
  check(require_driver().mem_get_info(&free, &total), "cuMemGetInfo");
  return static_cast<std::int64_t>(free);
}

Stream::Stream() {
  check(require_driver().stream_create(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}
Stream::~Stream() { require_driver().stream_destroy(stream_); }
void Stream::synchronize() const {
  check(require_driver().stream_synchronize(stream_), "cuStreamSynchronize");
}

Event::Event() { check(require_driver().event_create(&event_, CU_EVENT_DEFAULT), "cuEventCreate"); }
Event::~Event() { require_driver().event_destroy(event_); }
void Event::record(const Stream& stream) const {
  check(require_driver().event_record(event_, stream.get()), "cuEventRecord");
}
double Event::seconds_since(const Event& earlier) const {
  check(require_driver().event_synchronize(event_), "cuEventSynchronize");
  float milliseconds = 0;
  check(require_driver().event_elapsed_time(&milliseconds, earlier.event_, event_),
        "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const CUresult result = require_driver().mem_alloc(&pointer_, bytes);
  if (result == CUDA_SUCCESS) return;
  Fault fault = fault_of(require_driver(), "cuMemAlloc", result);
  fault.sentence += " asking for " + std::to_string(bytes) + " bytes";
  throw CudaFault(fault);
}
Buffer::~Buffer() {
  if (pointer_ != 0) require_driver().mem_free(pointer_);
}
void Buffer::upload(const Stream& stream, std::span<const std::byte> from, std::size_t at) const {
  check(require_driver().memcpy_htod_async(pointer_ + at, from.data(), from.size(), stream.get()),
        "cuMemcpyHtoDAsync");
}
void Buffer::download(const Stream& stream, std::span<std::byte> to, std::size_t at) const {
  check(require_driver().memcpy_dtoh_async(to.data(), pointer_ + at, to.size(), stream.get()),
        "cuMemcpyDtoHAsync");
}
void Buffer::copy_from(const Stream& stream, const Buffer& other) const {
  check(require_driver().memcpy_dtod_async(pointer_, other.pointer_, bytes_, stream.get()),
        "cuMemcpyDtoDAsync");
}
void Buffer::fill(const Stream& stream, unsigned char byte) const {
  if (bytes_ == 0) return;
  check(require_driver().memset_d8_async(pointer_, byte, bytes_, stream.get()), "cuMemsetD8Async");
}

void Graph::begin(const Stream& stream) {
  check(require_driver().stream_begin_capture(stream.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
}
void Graph::abandon(const Stream& stream) noexcept {
  CUgraph graph = nullptr;
  require_driver().stream_end_capture(stream.get(), &graph);
  if (graph != nullptr) require_driver().graph_destroy(graph);
}
Graph Graph::end(const Stream& stream) {
  CUgraph graph = nullptr;
  check(require_driver().stream_end_capture(stream.get(), &graph), "cuStreamEndCapture");
  CUgraphExec executable = nullptr;
  const CUresult result = require_driver().graph_instantiate(&executable, graph, 0);
  require_driver().graph_destroy(graph);
  check(result, "cuGraphInstantiateWithFlags");
  return Graph(executable);
}
Graph::~Graph() {
  if (executable_ != nullptr) require_driver().graph_exec_destroy(executable_);
}
void Graph::launch(const Stream& stream) const {
  check(require_driver().graph_launch(executable_, stream.get()), "cuGraphLaunch");
}

Kernel::Kernel(const std::string& image, const std::string& name) {
  const Driver& d = require_driver();
  check(d.module_load_data(&module_, image.data()), "cuModuleLoadData");
  const CUresult result = d.module_get_function(&function_, module_, name.c_str());
  if (result != CUDA_SUCCESS) d.module_unload(module_);
  check(result, "cuModuleGetFunction");
}
Kernel::~Kernel() {
  if (module_ != nullptr) require_driver().module_unload(module_);
}
void Kernel::allow_shared_bytes(std::size_t bytes) const {
  check(require_driver().func_set_attribute(
            function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
        "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
}
namespace {

using Attributes = std::array<CUlaunchAttribute, 2>;

// `attributes` must outlive the configuration.
CUlaunchConfig launch_config(const LaunchShape& shape, CUstream stream, Attributes& attributes) {
  unsigned count = 0;
  if (shape.overlaps_previous) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[count++].value.clusterDim = {.x = shape.cluster, .y = 1, .z = 1};
  }
  return {.gridDimX = shape.grid[0],
          .gridDimY = shape.grid[1],
          .gridDimZ = shape.grid[2],
          .blockDimX = shape.block,
          .blockDimY = 1,
          .blockDimZ = 1,
          .sharedMemBytes = shape.shared_bytes,
          .hStream = stream,
          .attrs = attributes.data(),
          .numAttrs = count};
}

}  // namespace

int Kernel::most_clusters(const LaunchShape& shape) const {
  Attributes attributes = {};
  const CUlaunchConfig config = launch_config(shape, nullptr, attributes);
  int clusters = 0;
  check(require_driver().occupancy_max_active_clusters(&clusters, function_, &config),
        "cuOccupancyMaxActiveClusters");
  return clusters;
}

void Kernel::launch(const Stream& stream, const LaunchShape& shape,
                    std::span<void*> arguments) const {
  Attributes attributes = {};
  const CUlaunchConfig config = launch_config(shape, stream.get(), attributes);
  check(require_driver().launch_kernel_ex(&config, function_, arguments.data(), nullptr),
        "cuLaunchKernelEx");
}

}  // namespace moegauge::cuda
