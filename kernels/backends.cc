#include <array>

#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"

namespace moegauge {

std::span<const Backend* const> all_backends() {
  static const std::array<const Backend*, 1> backends = {&cpu_backend()};
  return backends;
}

}  // namespace moegauge
