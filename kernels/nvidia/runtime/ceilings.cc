#include "kernels/nvidia/runtime/ceilings.h"

#include <algorithm>

#include "kernels/nvidia/runtime/cubin_cache.h"
#include "kernels/nvidia/runtime/sources.h"

namespace moegauge::cuda {
namespace {

constexpr unsigned threads = 256;                 // moe::kCeilingThreads
constexpr int columns = 192;                      // moe::kCeilingColumns
constexpr std::size_t buffer_bytes = 4ull << 30;  // many times the L2 cache
constexpr int launches = 7;

// Seconds of the fastest of several launches, after one to warm up.
double best_seconds(const Kernel& kernel, const Stream& stream, const LaunchShape& shape,
                    std::span<void*> arguments) {
  const Event begin, end;
  kernel.launch(stream, shape, arguments);
  double best = 1e30;
  for (int i = 0; i < launches; ++i) {
    begin.record(stream);
    kernel.launch(stream, shape, arguments);
    end.record(stream);
    best = std::min(best, end.seconds_since(begin));
  }
  return best;
}

}  // namespace

CompileRequest ceilings_request() {
  return {.main = {"ceilings.cu", "#include \"kernels/nvidia/device/ceilings.cuh\"\n"},
          .includes = device_sources(""),
          .options = {"-std=c++17", "-Xptxas=-v"},
          .arch = "sm_90a",
          .kernels = {"moe::read_kernel", "moe::dot_kernel<moe::Dot::e4m3>",
                      "moe::dot_kernel<moe::Dot::bf16>", "moe::dot_kernel<moe::Dot::s8>"}};
}

Ceilings measure_ceilings(const Gpu& gpu, DotKind dot) {
  static CubinCache cache(CubinCache::default_folder());
  const auto entry = cache.get(ceilings_request());
  if (!entry) {
    throw CudaFault(
        {FaultKind::error, "the ceilings' kernels do not compile: " + entry.error().sentence});
  }
  const Cubin& cubin = *entry->cubin;
  const Stream stream;
  const Buffer out(16);
  CUdeviceptr out_pointer = out.get();
  const auto blocks = static_cast<unsigned>(gpu.multiprocessors());
  Ceilings result;
  {
    const auto bytes =
        std::min<std::size_t>(buffer_bytes, static_cast<std::size_t>(gpu.free_bytes() / 2));
    const Buffer from(bytes);
    from.fill(stream, 0x5a);
    CUdeviceptr pointer = from.get();
    long long words = static_cast<long long>(bytes / 16);
    void* arguments[] = {&pointer, &words, &out_pointer};
    const Kernel kernel(cubin.image, cubin.names[0]);
    result.read_bytes_per_s =
        static_cast<double>(words) * 16 /
        best_seconds(kernel, stream, {.grid = {8 * blocks, 1, 1}, .block = threads}, arguments);
  }
  const Kernel kernel(cubin.image, cubin.names[1 + static_cast<std::size_t>(dot)]);
  const unsigned shared = (2 * 64 + columns) * 128 + 1024;
  kernel.allow_shared_bytes(shared);
  int rounds = 20000;
  void* arguments[] = {&rounds, &out_pointer};
  const double seconds =
      best_seconds(kernel, stream,
                   {.grid = {blocks, 1, 1}, .block = threads, .shared_bytes = shared}, arguments);
  const double k = dot == DotKind::bf16 ? 16 : 32;  // of one instruction; 4 a round, 2 warpgroups
  result.dot_flops_per_s = 2.0 * 64 * columns * k * 4 * 2 * rounds * blocks / seconds;
  return result;
}

}  // namespace moegauge::cuda
