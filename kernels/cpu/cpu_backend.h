// The `cpu` backend: SIMD kernels chosen at run time, threads, no library behind it.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/isa_level.h"

namespace moegauge {

// With the level of cpu::chosen_isa_level() (environment variable MOEGAUGE_CPU_ISA).
const Backend& cpu_backend();

// With a level of one's own, for tests that compare levels; `level` must be supported.
std::unique_ptr<const Backend> make_cpu_backend(cpu::IsaLevel level);

}  // namespace moegauge
