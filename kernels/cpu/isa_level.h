// Instruction-set levels and which one this process uses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/cpu/isa/kernel_table.h"
#include "kernels/cpu/isa/op_table.h"
#include "reference/base/expected.h"

namespace moegauge::cpu {

enum class IsaLevel : std::uint8_t {
  portable,     // any CPU
  avx2,         // AVX2, FMA, F16C
  avx512,       // AVX-512 F, BW, DQ, VL, VBMI
  avx512_bf16,  // the above and AVX512_BF16
};
std::string_view to_string(IsaLevel level);
std::optional<IsaLevel> isa_level_from(std::string_view name);
std::span<const IsaLevel> all_isa_levels();  // lowest first

bool supported(IsaLevel level);
IsaLevel best_isa_level();

// The best level, or the one that the environment variable MOEGAUGE_CPU_ISA names, for tests and
// for comparing levels; the error is a sentence where it names none or one that this CPU lacks.
inline constexpr const char* kIsaVariable = "MOEGAUGE_CPU_ISA";
Expected<IsaLevel, std::string> chosen_isa_level();

// `level` must be supported.
const KernelTable& kernels(IsaLevel level);
const OpTable& op_table(IsaLevel level);

}  // namespace moegauge::cpu
