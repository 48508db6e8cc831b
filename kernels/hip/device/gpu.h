// The processor under the kernels: an AMD GPU, or the emulator of one on the CPU. Kernels include
// this and see no difference.
#pragma once

#if defined(__AMDGCN__)
#include "kernels/hip/device/amdgcn.h"
#else
#include "kernels/hip/emulator/gpu.h"
#endif
