// The device code that CUDA and HIP share, behind the vocabulary that it is written in.
#pragma once

// The order matters.
// clang-format off
#include "kernels/hip/device/gpu.h"
#include "kernels/device/align.h"
#include "kernels/device/rules.h"
// clang-format on
