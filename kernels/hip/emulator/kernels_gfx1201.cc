#define MOE_ARCH Gfx1201
#include "kernels/hip/emulator/kernels.inc"

namespace moegauge::emulator {

std::vector<Kernel> gfx1201_kernels() { return moe::all(); }

}  // namespace moegauge::emulator
