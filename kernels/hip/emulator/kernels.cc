#include "kernels/hip/emulator/kernels.h"

#include <algorithm>
#include <map>

namespace moegauge::emulator {
namespace {

std::map<std::string_view, std::vector<Kernel>>& all_kernels() {
  static std::map<std::string_view, std::vector<Kernel>> all = {
      {"gfx942", gfx942_kernels()}, {"gfx950", gfx950_kernels()}, {"gfx1201", gfx1201_kernels()}};
  return all;
}

}  // namespace

const std::vector<Kernel>& kernels_of(std::string_view architecture) {
  static const std::vector<Kernel> none;
  const auto found = all_kernels().find(architecture);
  return found == all_kernels().end() ? none : found->second;
}

const Kernel* find_kernel(std::string_view architecture, std::string_view name) {
  const std::vector<Kernel>& kernels = kernels_of(architecture);
  const auto found = std::ranges::find(kernels, name, &Kernel::name);
  return found == kernels.end() ? nullptr : &*found;
}

void replace_kernels(std::string_view architecture, const std::vector<Kernel>& others) {
  std::vector<Kernel>& kernels = all_kernels().at(architecture);
  for (const Kernel& other : others) {
    const auto place = std::ranges::find(kernels, other.name, &Kernel::name);
    if (place != kernels.end()) place->run = other.run;
  }
}

}  // namespace moegauge::emulator
