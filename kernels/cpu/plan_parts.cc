#include "kernels/cpu/plan_parts.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "kernels/cpu/machine.h"
#include "reference/base/process_limits.h"

namespace moegauge::cpu {

std::string out_of_memory(std::string_view what) {
  return std::string(what) + " could not be allocated; " + std::to_string(available_memory()) +
         " bytes of memory are available";
}

void CacheEvictor::evict(const KernelTable& kernels, ThreadPool& pool) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
  const std::int64_t chunks = 4 * machine().last_level_cache_bytes / kChunk + 1;
  if (buffer_.size() == 0) {
    buffer_ = Array<std::byte>(chunks * kChunk);
    std::ranges::fill(buffer_.span(), std::byte{1});
  }
  std::atomic<std::uint64_t> sink = 0;
  // Every thread has caches of its own: each goes through as much as it can get.
  pool.parallel_for(
      chunks,
      [&](std::int64_t c) {
        sink.fetch_add(kernels.sum(buffer_.data() + c * kChunk, kChunk), std::memory_order_relaxed);
      },
      Schedule::contiguous);
}

}  // namespace moegauge::cpu
