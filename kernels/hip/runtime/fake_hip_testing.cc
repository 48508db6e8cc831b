#include "kernels/hip/runtime/fake_hip_testing.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "kernels/hip/emulator/block.h"
#include "kernels/hip/emulator/kernels.h"

namespace moegauge::hip {

struct HipStreamHandle {
  bool capturing = false;
  std::vector<std::function<void()>> captured = {};
};
struct HipEventHandle {
  bool recorded = false;
};
struct HipModuleHandle {};
struct HipFunctionHandle {
  const emulator::Kernel* kernel;
};
struct HipGraphHandle {
  std::vector<std::function<void()>> work;
};
struct HipGraphExecHandle {
  std::vector<std::function<void()>> work;
};

namespace {

FakeHip fake;

template <typename Handle>
HipError gone(Handle* handle, int& count) {
  if (handle == nullptr) ++fake.bad_handles;
  delete handle;
  --count;
  return hip_success;
}

// Now, or when the graph that is being captured is launched.
HipError submit(HipStreamHandle* stream, std::function<void()> work) {
  if (stream->capturing)
    stream->captured.push_back(std::move(work));
  else
    work();
  return hip_success;
}

HipError launch_kernel(HipFunctionHandle* function, unsigned grid, unsigned, unsigned,
                       unsigned block, unsigned, unsigned, unsigned, HipStreamHandle* stream,
                       void** arguments, void**) {
  if (fake.launch_error != hip_success) return fake.launch_error;
  moe::LayerArgs args;
  std::memcpy(&args, arguments[0], sizeof args);
  const emulator::Kernel* kernel = function->kernel;
  ++fake.launches;
  return submit(stream, [=] {
    emulator::run_grid({.blocks = static_cast<int>(grid),
                        .threads = static_cast<int>(block),
                        .lanes = 64,
                        .shared_limit = 65536,
                        .fnuz = true},
                       [&] { kernel->run(args); });
  });
}

void bind_devices(HipApi& api) {
  api.runtime_get_version = [](int* v) { return *v = 60240092, hip_success; };
  api.get_error_name = [](HipError e) {
    return e == hip_out_of_memory ? "hipErrorOutOfMemory"
           : e == hip_no_device   ? "hipErrorNoDevice"
                                  : "hipErrorUnknown";
  };
  api.get_error_string = [](HipError) { return "as the test asked"; };
  api.get_device_count = [](int* n) {
    return *n = fake.devices, fake.devices == 0 ? hip_no_device : hip_success;
  };
  api.set_device = [](int) { return hip_success; };
  api.get_device_properties = [](void* p, int) {
    std::memcpy(static_cast<char*>(p) + 1160, fake.architecture.c_str(),
                fake.architecture.size() + 1);
    return hip_success;
  };
  api.device_get_name = [](char* name, int, int) {
    std::strcpy(name, "AMD Instinct fake");
    return hip_success;
  };
  api.device_total_mem = [](std::size_t* bytes, int) {
    return *bytes = std::size_t{1} << 30, hip_success;
  };
}

void bind_memory(HipApi& api) {
  api.malloc = [](void** memory, std::size_t bytes) {
    if (fake.malloc_error != hip_success) return fake.malloc_error;
    ++fake.memory;
    *memory = std::aligned_alloc(16, (bytes + 15) / 16 * 16);
    return hip_success;
  };
  api.free = [](void* memory) {
    --fake.memory;
    std::free(memory);
    return hip_success;
  };
  api.memcpy_async = [](void* to, const void* from, std::size_t bytes, int, HipStreamHandle* s) {
    return submit(s, [=] { std::memcpy(to, from, bytes); });
  };
  api.memset_async = [](void* to, int value, std::size_t bytes, HipStreamHandle* s) {
    return submit(s, [=] { std::memset(to, value, bytes); });
  };
}

void bind_streams(HipApi& api) {
  api.stream_create = [](HipStreamHandle** s, unsigned) {
    return *s = new HipStreamHandle, ++fake.streams, hip_success;
  };
  api.stream_destroy = [](HipStreamHandle* s) { return gone(s, fake.streams); };
  api.stream_synchronize = [](HipStreamHandle*) { return hip_success; };
  api.event_create = [](HipEventHandle** e) {
    return *e = new HipEventHandle, ++fake.events, hip_success;
  };
  api.event_destroy = [](HipEventHandle* e) { return gone(e, fake.events); };
  api.event_record = [](HipEventHandle* e, HipStreamHandle*) {
    return e->recorded = true, hip_success;
  };
  api.event_synchronize = [](HipEventHandle*) { return hip_success; };
  api.event_elapsed_time = [](float* ms, HipEventHandle* begin, HipEventHandle* end) {
    return *ms = begin->recorded && end->recorded ? 2.5f : -1.0f, hip_success;
  };
}

void bind_graphs(HipApi& api) {
  api.stream_begin_capture = [](HipStreamHandle* s, int) {
    return s->capturing = true, hip_success;
  };
  api.stream_end_capture = [](HipStreamHandle* s, HipGraphHandle** g) {
    *g = new HipGraphHandle{std::move(s->captured)};
    ++fake.graphs;
    s->capturing = false;
    s->captured.clear();
    return hip_success;
  };
  api.graph_instantiate = [](HipGraphExecHandle** exec, HipGraphHandle* g, void*, char*,
                             std::size_t) {
    return *exec = new HipGraphExecHandle{g->work}, ++fake.graph_execs, hip_success;
  };
  api.graph_launch = [](HipGraphExecHandle* exec, HipStreamHandle*) {
    ++fake.graph_launches;
    for (const auto& work : exec->work) work();
    return hip_success;
  };
  api.graph_destroy = [](HipGraphHandle* g) { return gone(g, fake.graphs); };
  api.graph_exec_destroy = [](HipGraphExecHandle* e) { return gone(e, fake.graph_execs); };
}

void bind_modules(HipApi& api) {
  api.module_load_data = [](HipModuleHandle** m, const void*) {
    return *m = new HipModuleHandle, ++fake.modules, hip_success;
  };
  api.module_unload = [](HipModuleHandle* m) { return gone(m, fake.modules); };
  api.module_get_function = [](HipFunctionHandle** f, HipModuleHandle*, const char* name) {
    static std::deque<HipFunctionHandle> functions;  // a module's functions live as long as it
    const emulator::Kernel* kernel = emulator::find_kernel("gfx942", name);
    if (kernel == nullptr) return HipError{500};
    return *f = &functions.emplace_back(HipFunctionHandle{kernel}), hip_success;
  };
  api.module_launch_kernel = &launch_kernel;
}

}  // namespace

FakeHip& fake_hip() {
  fake = {};
  return fake;
}

HipApi fake_hip_api() {
  HipApi api = {};
  bind_devices(api);
  bind_memory(api);
  bind_streams(api);
  bind_graphs(api);
  bind_modules(api);
  return api;
}

}  // namespace moegauge::hip
