#include "kernels/hip/runtime/gpu.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "reference/base/fnv1a.h"

namespace moegauge::hip {
namespace {

void check(const HipApi& api, const char* call, HipError error) {
  if (error != hip_success) throw HipFault(fault_of(api, call, error));
}

class HipGpu final : public Gpu {
 public:
  HipGpu(const HipApi& api, const Architecture& architecture, GpuDescription description,
         const std::string& code)
      : api_(api), architecture_(architecture), description_(std::move(description)) {
    check(api_, "hipSetDevice", api_.set_device(0));
    check(api_, "hipStreamCreateWithFlags", api_.stream_create(&stream_, hip_stream_non_blocking));
    check(api_, "hipModuleLoadData", api_.module_load_data(&module_, code.data()));
    check(api_, "hipEventCreate", api_.event_create(&begin_));
    check(api_, "hipEventCreate", api_.event_create(&end_));
  }
  ~HipGpu() override {
    if (end_ != nullptr) api_.event_destroy(end_);
    if (begin_ != nullptr) api_.event_destroy(begin_);
    if (module_ != nullptr) api_.module_unload(module_);
    if (stream_ != nullptr) api_.stream_destroy(stream_);
  }

  const Architecture& architecture() const override { return architecture_; }
  const GpuDescription& description() const override { return description_; }

  void* allocate(std::size_t bytes) const override {
    void* memory = nullptr;
    check(api_, "hipMalloc", api_.malloc(&memory, bytes));
    return memory;
  }
  void release(void* memory) const noexcept override { api_.free(memory); }
  void upload(void* to, std::span<const std::byte> from) const override {
    move(to, from.data(), from.size(), hip_copy_to_device);
    synchronize();  // the caller's memory may go
  }
  void download(std::span<std::byte> to, const void* from) const override {
    move(to.data(), from, to.size(), hip_copy_to_host);
    synchronize();
  }
  void copy(void* to, const void* from, std::size_t bytes) const override {
    move(to, from, bytes, hip_copy_on_device);
  }
  void fill(void* to, unsigned char byte, std::size_t bytes) const override {
    check(api_, "hipMemsetAsync", api_.memset_async(to, byte, bytes, stream_));
  }

  // More than the 256 MB of the largest last-level cache among these.
  std::size_t flush_bytes() const override { return std::size_t{512} << 20; }

  double run(std::span<const Call> calls) const override {
    return timed([&] { launch(calls); });
  }
  bool serves_graphs() const override { return true; }
  double run_graph(std::span<const Call> calls) const override {
    HipGraphHandle* graph = nullptr;
    HipGraphExecHandle* exec = nullptr;
    check(api_, "hipStreamBeginCapture",
          api_.stream_begin_capture(stream_, hip_capture_thread_local));
    const auto fault = guarded([&] { launch(calls); });
    const HipError ended = api_.stream_end_capture(stream_, &graph);
    if (fault) {
      if (graph != nullptr) api_.graph_destroy(graph);
      throw HipFault(*fault);
    }
    check(api_, "hipStreamEndCapture", ended);
    const HipError made = api_.graph_instantiate(&exec, graph, nullptr, nullptr, 0);
    api_.graph_destroy(graph);
    check(api_, "hipGraphInstantiate", made);
    double seconds = 0;
    const auto failed = guarded([&] {
      // Once before: the first launch of a graph uploads it.
      check(api_, "hipGraphLaunch", api_.graph_launch(exec, stream_));
      seconds = timed([&] { check(api_, "hipGraphLaunch", api_.graph_launch(exec, stream_)); });
    });
    api_.graph_exec_destroy(exec);
    if (failed) throw HipFault(*failed);
    return seconds;
  }

 private:
  void move(void* to, const void* from, std::size_t bytes, int kind) const {
    check(api_, "hipMemcpyAsync", api_.memcpy_async(to, from, bytes, kind, stream_));
  }
  void synchronize() const {
    check(api_, "hipStreamSynchronize", api_.stream_synchronize(stream_));
  }

  HipFunctionHandle* function(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    HipFunctionHandle*& known = functions_[name];
    if (known == nullptr) {
      check(api_, ("hipModuleGetFunction of " + name).c_str(),
            api_.module_get_function(&known, module_, name.c_str()));
    }
    return known;
  }

  void launch(std::span<const Call> calls) const {
    for (const Call& call : calls) {
      moe::LayerArgs args = call.args;
      void* arguments[] = {&args};
      for (const KernelLaunch& kernel : call.launches) {
        check(api_, "hipModuleLaunchKernel",
              api_.module_launch_kernel(
                  function(kernel.kernel), static_cast<unsigned>(kernel.blocks), 1, 1,
                  static_cast<unsigned>(kernel.threads), 1, 1, 0, stream_, arguments, nullptr));
      }
    }
  }

  template <typename Work>
  double timed(Work&& work) const {
    check(api_, "hipEventRecord", api_.event_record(begin_, stream_));
    work();
    check(api_, "hipEventRecord", api_.event_record(end_, stream_));
    check(api_, "hipEventSynchronize", api_.event_synchronize(end_));
    float milliseconds = 0;
    check(api_, "hipEventElapsedTime", api_.event_elapsed_time(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  const HipApi& api_;
  const Architecture& architecture_;
  const GpuDescription description_;
  HipStreamHandle* stream_ = nullptr;
  HipModuleHandle* module_ = nullptr;
  HipEventHandle *begin_ = nullptr, *end_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::map<std::string, HipFunctionHandle*> functions_;
};

std::string known_architectures() {
  std::string names;
  for (const Architecture& a : architectures())
    names += (names.empty() ? "" : ", ") + std::string(a.name);
  return names;
}

std::string arch_of(const HipApi& api) {
  // hipDeviceProp_t holds the name somewhere in the middle, and each release adds to what is before
  // it. 16 KB are several times the largest so far.
  std::string properties(16384, '\0');
  if (api.get_device_properties(properties.data(), 0) != hip_success) return "";
  return architecture_in(properties);
}

GpuDescription describe(const HipApi& api) {
  GpuDescription d;
  std::array<char, 256> name = {};
  if (api.device_get_name(name.data(), static_cast<int>(name.size() - 1), 0) == hip_success)
    d.name = name.data();
  std::size_t bytes = 0;
  if (api.device_total_mem(&bytes, 0) == hip_success)
    d.memory_bytes = static_cast<std::int64_t>(bytes);
  int version = 0;  // 60240092 is HIP 6.2
  if (api.runtime_get_version(&version) == hip_success) {
    d.runtime =
        "hip " + std::to_string(version / 10000000) + "." + std::to_string(version / 100000 % 100);
  }
  return d;
}

}  // namespace

std::string architecture_in(std::string_view properties) {
  for (std::size_t at = properties.find("gfx"); at != std::string_view::npos;
       at = properties.find("gfx", at + 1)) {
    const auto end = std::find_if(properties.begin() + static_cast<std::ptrdiff_t>(at),
                                  properties.end(), [](char c) {
                                    return !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                                             c == ':' || c == '+' || c == '-');
                                  });
    const std::string found(properties.begin() + static_cast<std::ptrdiff_t>(at), end);
    if (found.size() > 5) return found;
  }
  return "";
}

Expected<std::shared_ptr<const Gpu>, std::string> open_gpu(const Expected<HipApi, std::string>& api,
                                                           const std::string& folder) {
  if (!api) return Unexpected{api.error()};
  int count = 0;
  const HipError counted = api->get_device_count(&count);
  if (counted != hip_success || count == 0) {
    return Unexpected{"runtime without a device (" +
                      fault_of(*api, "hipGetDeviceCount", counted).sentence + ")"};
  }
  GpuDescription description = describe(*api);
  const std::string arch = arch_of(*api);
  const Architecture* architecture = find_architecture(arch);
  if (architecture == nullptr) {
    return Unexpected{description.name + " is " + (arch.empty() ? "of no known kind" : arch) +
                      "; there are kernels for " + known_architectures()};
  }
  const std::string file = "moegauge_hip_" + std::string(architecture->name) + ".co";
  std::ifstream in(folder + "/" + file, std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (code.empty()) {
    return Unexpected{"built without device code (" + file +
                      " is not beside the binary: no clang++-22 or amdclang++ was found)"};
  }
  description.code_hash = fnv1a(code);
  std::shared_ptr<const Gpu> gpu;
  const auto fault = guarded(
      [&] { gpu = std::make_shared<HipGpu>(*api, *architecture, std::move(description), code); });
  if (fault) return Unexpected{fault->sentence};
  return gpu;
}

}  // namespace moegauge::hip
