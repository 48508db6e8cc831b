// What the device can do at best, measured now.
#pragma once

#include "kernels/backend.h"
#include "kernels/cuda/runtime/compiler.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/schemes/cuda_scheme.h"

namespace moegauge::cuda {

// read_bytes_per_s: all multiprocessors sum a buffer many times the L2 cache. dot_flops_per_s: they
// repeat the scheme's matrix instruction from shared memory on random values. Each is the best of
// several launches, because a ceiling is what nothing disturbed. Throws CudaFault.
Ceilings measure_ceilings(const Gpu& gpu, const CudaScheme& scheme);

// For the tests that compile every kernel.
CompileRequest ceilings_request();

}  // namespace moegauge::cuda
