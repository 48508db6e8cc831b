// The device sources that NVRTC compiles: embedded in the binary, or read from a source tree where
// MOEGAUGE_DEVICE_SOURCE names one (for the person editing a kernel: no rebuild).
#pragma once

#include <string_view>
#include <vector>

#include "kernels/nvidia/runtime/compiler.h"

namespace moegauge::cuda {

// Those that all share and those in `folder` ("kernels/NAME/device/"; empty: no others), by the
// names under which they include each other. Throws InputError where the variable names a tree that
// lacks one of them.
std::vector<SourceFile> device_sources(std::string_view folder);

}  // namespace moegauge::cuda
