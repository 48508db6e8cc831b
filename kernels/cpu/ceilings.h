// What this machine can do at best, against which the kernels are held.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/isa/kernel_table.h"

namespace moegauge::cpu {

// read_bytes_per_s: all threads sum a buffer much larger than the last-level cache;
// dot_flops_per_s: all threads run the kernel's dot instruction on registers alone. Each is the
// best of several passes, because a ceiling is what nothing disturbed. About half a second. Throws
// std::bad_alloc.
Ceilings measure_ceilings(const KernelTable& kernels, DotUnit unit, int threads,
                          std::int64_t last_level_cache_bytes);

}  // namespace moegauge::cpu
