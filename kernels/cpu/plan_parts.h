// What the plans of whole layers and of single ops share.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/cpu/buffer.h"
#include "kernels/cpu/isa/kernel_table.h"
#include "reference/base/thread_pool.h"

namespace moegauge::cpu {

// A sentence with the memory that is available.
std::string out_of_memory(std::string_view what);

// Streams through four last-level caches, so that neither weights nor activations are left in one.
class CacheEvictor {
 public:
  // Throws std::bad_alloc.
  void evict(const KernelTable& kernels, ThreadPool& pool);

 private:
  Array<std::byte> buffer_;
};

}  // namespace moegauge::cpu
