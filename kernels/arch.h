// What families of devices can do, so that `explain` can answer for one that is not in this
// machine. Capabilities only, by family and never by product name; whether there are kernels for a
// family is the backends' to say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reference/schemes/scheme.h"

namespace moegauge {

enum class Fp8Flavour : std::uint8_t { none, ocp, fnuz };

struct ArchFamily {
  std::string_view name;     // as compilers call it, x for any digit: gfx94x, sm_90
  std::string_view backend;  // whose kernels could run there
  std::string_view matrix;   // its matrix instructions, in a word
  int lanes = 0;             // of a wave or warp; 0 on a CPU
  Fp8Flavour fp8 = Fp8Flavour::none;
  bool native_mx = false;    // matrix instructions that take E8M0 scales
  bool has_kernels = false;  // in this version
  // How far those were proven, where nobody could run them on such a device; else empty.
  std::string_view proven = {};
};

std::span<const ArchFamily> arch_families();
// The family of "gfx942", "sm_90", "cpu"; null for one that is not known.
const ArchFamily* arch_family(std::string_view arch);

// "MFMA, waves of 64, FP8 as FNUZ, no native MX"
std::string capabilities(const ArchFamily& family);

// Why the family's matrix instructions cannot take a scheme's operands as they are, with what
// would; nothing where they can. A kernel may still serve it by decoding to something wider.
std::optional<std::string> operand_obstacle(const ArchFamily& family, const SchemeTraits& traits);

}  // namespace moegauge
