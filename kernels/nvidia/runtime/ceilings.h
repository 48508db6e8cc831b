// What the device can do at best, measured now.
#pragma once

#include "kernels/backend.h"
#include "kernels/nvidia/runtime/compiler.h"
#include "kernels/nvidia/runtime/device.h"

namespace moegauge::cuda {

// The matrix instruction whose rate is asked for; fp16's is bf16's.
enum class DotKind : std::uint8_t { e4m3, bf16, int8 };

// read_bytes_per_s: all multiprocessors sum a buffer many times the L2 cache. dot_flops_per_s: they
// repeat the matrix instruction from shared memory on random values. Each is the best of
// several launches, because a ceiling is what nothing disturbed. Throws CudaFault.
Ceilings measure_ceilings(const Gpu& gpu, DotKind dot);

// For the tests that compile every kernel.
CompileRequest ceilings_request();

}  // namespace moegauge::cuda
