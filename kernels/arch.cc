#include "kernels/arch.h"

#include <algorithm>
#include <array>

namespace moegauge {
namespace {

constexpr std::string_view emulated =
    "compiled and emulated on the CPU, never yet run on such a device (docs/amd.md)";

// Sources: the instruction set manuals of CDNA 3, CDNA 4 and RDNA 4; the PTX ISA's tables of mma,
// wgmma and tcgen05 (kinds f8f6f4 and mxf8f6f4). The first that fits counts.
constexpr std::array families = {
    ArchFamily{.name = "gfx942",
               .backend = "hip",
               .matrix = "MFMA",
               .lanes = 64,
               .fp8 = Fp8Flavour::fnuz,
               .has_kernels = true,
               .proven = emulated},
    ArchFamily{
        .name = "gfx94x", .backend = "hip", .matrix = "MFMA", .lanes = 64, .fp8 = Fp8Flavour::fnuz},
    ArchFamily{.name = "gfx950",
               .backend = "hip",
               .matrix = "MFMA",
               .lanes = 64,
               .fp8 = Fp8Flavour::ocp,
               .native_mx = true,
               .has_kernels = true,
               .proven = emulated},
    ArchFamily{.name = "gfx1201",
               .backend = "hip",
               .matrix = "WMMA",
               .lanes = 32,
               .fp8 = Fp8Flavour::ocp,
               .has_kernels = true,
               .proven = emulated},
    ArchFamily{
        .name = "gfx120x", .backend = "hip", .matrix = "WMMA", .lanes = 32, .fp8 = Fp8Flavour::ocp},
    ArchFamily{.name = "gfx90a", .backend = "hip", .matrix = "MFMA", .lanes = 64},
    ArchFamily{.name = "gfx11xx", .backend = "hip", .matrix = "WMMA", .lanes = 32},
    ArchFamily{.name = "sm_90",
               .backend = "cuda",
               .matrix = "wgmma",
               .lanes = 32,
               .fp8 = Fp8Flavour::ocp,
               .has_kernels = true},
    ArchFamily{.name = "sm_10x",
               .backend = "cuda",
               .matrix = "tcgen05",
               .lanes = 32,
               .fp8 = Fp8Flavour::ocp,
               .native_mx = true},
    ArchFamily{.name = "sm_12x",
               .backend = "cuda",
               .matrix = "mma",
               .lanes = 32,
               .fp8 = Fp8Flavour::ocp,
               .native_mx = true},
    ArchFamily{
        .name = "sm_89", .backend = "cuda", .matrix = "mma", .lanes = 32, .fp8 = Fp8Flavour::ocp},
    ArchFamily{.name = "sm_8x", .backend = "cuda", .matrix = "mma", .lanes = 32},
    ArchFamily{
        .name = "cpu", .backend = "cpu", .matrix = "vector dot products", .has_kernels = true},
};

bool fits(std::string_view pattern, std::string_view arch) {
  return std::ranges::equal(
      pattern, arch, [](char p, char a) { return p == a || (p == 'x' && a >= '0' && a <= '9'); });
}

std::string_view shown(Fp8Flavour flavour) {
  switch (flavour) {
    case Fp8Flavour::ocp:
      return "FP8 as OCP";
    case Fp8Flavour::fnuz:
      return "FP8 as FNUZ";
    case Fp8Flavour::none:
      break;
  }
  return "no FP8";
}

// The flavour that an operand is in, or none where it is no FP8.
Fp8Flavour flavour_of(const OperandTraits& operand) {
  if (operand.element == Element::e4m3fn) return Fp8Flavour::ocp;
  return operand.element == Element::e4m3fnuz ? Fp8Flavour::fnuz : Fp8Flavour::none;
}

}  // namespace

std::span<const ArchFamily> arch_families() { return families; }

const ArchFamily* arch_family(std::string_view arch) {
  // The pattern's own x is a digit in an arch and a letter in a family's name: both are taken.
  const auto found = std::ranges::find_if(families, [arch](const ArchFamily& family) {
    return fits(family.name, arch) || family.name == arch;
  });
  return found == families.end() ? nullptr : &*found;
}

std::string capabilities(const ArchFamily& family) {
  std::string text(family.matrix);
  if (family.lanes == 0) return text + ", all number formats by decoding";
  return text + ", waves of " + std::to_string(family.lanes) + ", " +
         std::string(shown(family.fp8)) + (family.native_mx ? ", native MX" : ", no native MX");
}

std::optional<std::string> operand_obstacle(const ArchFamily& family, const SchemeTraits& traits) {
  const Fp8Flavour wanted = flavour_of(traits.activation);
  if (family.lanes == 0 || wanted == Fp8Flavour::none) return std::nullopt;
  if (family.fp8 == Fp8Flavour::none) return "it has no FP8 matrix instructions";
  const char* flavor = family.fp8 == Fp8Flavour::fnuz ? "fnuz" : "ocp";
  if (traits.activation.scale == ScaleKind::e8m0 && !family.native_mx) {
    return std::string(
               "it has no MX matrix instructions; convert the weights: moegauge convert IN "
               "OUT --to fp8_block --flavor ") +
           flavor;
  }
  if (wanted == family.fp8) return std::nullopt;
  return family.fp8 == Fp8Flavour::fnuz
             ? "its FP8 is FNUZ and the scheme's is OCP; ask for the scheme's option _fnuz"
             : "its FP8 is OCP and the scheme's is FNUZ; ask for the scheme without _fnuz";
}

}  // namespace moegauge
