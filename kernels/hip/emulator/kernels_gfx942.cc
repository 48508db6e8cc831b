#define MOE_ARCH Gfx942
#include "kernels/hip/emulator/kernels.inc"

namespace moegauge::emulator {

std::vector<Kernel> gfx942_kernels() { return moe::all(); }

}  // namespace moegauge::emulator
