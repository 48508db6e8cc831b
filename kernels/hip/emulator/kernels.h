// The kernels of each architecture as functions of the CPU.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/hip/device/layer_args.h"

namespace moegauge::emulator {

struct Kernel {
  std::string name;
  void (*run)(const moe::LayerArgs& args);  // one thread's part
};

// Null where the architecture has no kernel of that name.
const Kernel* find_kernel(std::string_view architecture, std::string_view name);
const std::vector<Kernel>& kernels_of(std::string_view architecture);
// For tests, before anything runs: these in place of those of the same names.
void replace_kernels(std::string_view architecture, const std::vector<Kernel>& others);

// Each from a source file of its own.
std::vector<Kernel> gfx942_kernels();
std::vector<Kernel> gfx950_kernels();
std::vector<Kernel> gfx1201_kernels();

}  // namespace moegauge::emulator
