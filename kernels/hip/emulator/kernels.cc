#include "kernels/hip/emulator/kernels.h"

#include <algorithm>
#include <map>

namespace moegauge::emulator {

const std::vector<Kernel>& kernels_of(std::string_view architecture) {
  static const std::map<std::string_view, std::vector<Kernel>> all = {
      {"gfx942", gfx942_kernels()}, {"gfx950", gfx950_kernels()}, {"gfx1201", gfx1201_kernels()}};
  static const std::vector<Kernel> none;
  const auto found = all.find(architecture);
  return found == all.end() ? none : found->second;
}

const Kernel* find_kernel(std::string_view architecture, std::string_view name) {
  const std::vector<Kernel>& kernels = kernels_of(architecture);
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

}  // namespace moegauge::emulator
