// Runs a kernel's blocks on the CPU, one after the other, a fiber for each GPU thread.
//
// Between two barriers threads run in an order drawn from the seed, and so do blocks: a kernel
// whose result depends on the order gives different bits under different seeds. The block's memory
// is filled with 0xff (NaN in every floating-point format, -1 in integers) before each block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace moegauge::emulator {

// Something that a GPU would hang on or leave undefined, with the places in the source.
struct KernelFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Grid {
  int blocks = 0;
  int threads = 0;               // of a block
  int lanes = 0;                 // of a wave
  std::size_t shared_limit = 0;  // bytes of memory that a block may have
  bool fnuz = false;             // FP8 in AMD's own flavour
  std::uint64_t seed = 0;        // 0: threads and blocks in their own order
};

// `kernel` is called once by each thread. Throws KernelFault.
void run_grid(const Grid& grid, const std::function<void()>& kernel);

}  // namespace moegauge::emulator
