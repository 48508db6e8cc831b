// The device sources that NVRTC compiles: embedded in the binary, or read from a source tree where
// MOEGAUGE_DEVICE_SOURCE names one (for the person editing a kernel: no rebuild).
#pragma once

#include <vector>

#include "kernels/cuda/runtime/compiler.h"

namespace moegauge::cuda {

// By the names under which they include each other, e.g. "kernels/cuda/device/tma.cuh". Throws
// InputError where the variable names a tree that lacks one of them.
std::vector<SourceFile> device_sources();

}  // namespace moegauge::cuda
