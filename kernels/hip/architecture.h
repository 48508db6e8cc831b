// The architectures that there is device code for, as the host sees them: from device/arch.h.
#pragma once

#include <span>
#include <string_view>

namespace moegauge::hip {

struct Architecture {
  std::string_view name;
  int lanes = 0;      // of a wave
  bool mfma = false;  // else WMMA
  bool fnuz = false;  // E4M3 as FNUZ; else OCP
  int shared_bytes = 0;
};

std::span<const Architecture> architectures();
// Null for one without kernels. `name` may carry features, as the runtime reports them:
// "gfx942:sramecc+:xnack-".
const Architecture* find_architecture(std::string_view name);

}  // namespace moegauge::hip
