#include "kernels/hip/architecture.h"

#include <algorithm>
#include <array>

#include "kernels/hip/device/arch.h"

namespace moegauge::hip {
namespace {

template <typename Arch>
constexpr Architecture described(std::string_view name) {
  return {.name = name,
          .lanes = Arch::kLanes,
          .mfma = Arch::kMfma,
          .fnuz = Arch::kFnuz,
          .shared_bytes = Arch::kSharedBytes};
}

constexpr std::array table = {described<moe::Gfx942>("gfx942"), described<moe::Gfx950>("gfx950"),
                              described<moe::Gfx1201>("gfx1201")};

}  // namespace

std::span<const Architecture> architectures() { return table; }

const Architecture* find_architecture(std::string_view name) {
  const auto found = std::ranges::find(table, name.substr(0, name.find(':')), &Architecture::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace moegauge::hip
