#include "kernels/cpu/ceilings.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "kernels/cpu/buffer.h"
#include "reference/base/thread_pool.h"

namespace moegauge::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Twice what the caches hold: read in a circle, little of it is still there, and more of it costs
// fresh pages, which take longer than reading them.
double read_rate(const KernelTable& kernels, ThreadPool& pool, std::int64_t cache_bytes) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 22;
  constexpr int kPasses = 5;
  const std::int64_t chunks = std::max<std::int64_t>(2 * cache_bytes, 256 << 20) / kChunk;
  const Array<std::byte> data(chunks * kChunk);
  pool.parallel_for(
      chunks, [&](std::int64_t c) { std::memset(data.data() + c * kChunk, 1, kChunk); },
      Schedule::contiguous);
  std::atomic<std::uint64_t> sink = 0;
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto begin = Clock::now();
    pool.parallel_for(
        chunks,
        [&](std::int64_t c) {
          sink.fetch_add(kernels.sum(data.data() + c * kChunk, kChunk), std::memory_order_relaxed);
        },
        Schedule::contiguous);
    best = std::max(best, static_cast<double>(data.size()) / seconds_since(begin));
  }
  return best;
}

double dot_rate(const KernelTable& kernels, DotUnit unit, ThreadPool& pool) {
  constexpr int kPasses = 5;
  constexpr std::int64_t kIterations = 1'000'000;  // some milliseconds
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::atomic<double> operations = 0;
    const auto begin = Clock::now();
    pool.parallel_for(
        pool.threads(), [&](std::int64_t) { operations += kernels.dot_loop(unit, kIterations); },
        Schedule::contiguous);
    best = std::max(best, operations / seconds_since(begin));
  }
  return best;
}

}  // namespace

Ceilings measure_ceilings(const KernelTable& kernels, DotUnit unit, int threads,
                          std::int64_t last_level_cache_bytes) {
  ThreadPool pool(threads);
  return {.read_bytes_per_s = read_rate(kernels, pool, last_level_cache_bytes),
          .dot_flops_per_s = dot_rate(kernels, unit, pool)};
}

}  // namespace moegauge::cpu
