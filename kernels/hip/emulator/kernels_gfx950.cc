#define MOE_ARCH Gfx950
#include "kernels/hip/emulator/kernels.inc"

namespace moegauge::emulator {

std::vector<Kernel> gfx950_kernels() { return moe::all(); }

}  // namespace moegauge::emulator
