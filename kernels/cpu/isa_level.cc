#include "kernels/cpu/isa_level.h"

#include <array>
#include <cstdlib>
#include <string>

namespace moegauge::cpu {
namespace {

constexpr std::array kLevels = {IsaLevel::portable, IsaLevel::avx2, IsaLevel::avx512,
                                IsaLevel::avx512_bf16};
constexpr std::array<std::string_view, kLevels.size()> kNames = {"portable", "avx2", "avx512",
                                                                 "avx512_bf16"};

}  // namespace

std::string_view to_string(IsaLevel level) { return kNames[static_cast<std::size_t>(level)]; }

std::optional<IsaLevel> isa_level_from(std::string_view name) {
  for (const IsaLevel level : kLevels) {
    if (to_string(level) == name) return level;
  }
  return std::nullopt;
}

std::span<const IsaLevel> all_isa_levels() { return kLevels; }

bool supported(IsaLevel level) {
#if defined(__x86_64__)
  // These ask CPUID and whether the operating system saves the registers.
  switch (level) {
    case IsaLevel::portable:
      return true;
    case IsaLevel::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case IsaLevel::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vbmi");
    case IsaLevel::avx512_bf16:
      return supported(IsaLevel::avx512) && __builtin_cpu_supports("avx512bf16");
  }
  return false;
#else
  return level == IsaLevel::portable;
#endif
}

IsaLevel best_isa_level() {
  IsaLevel best = IsaLevel::portable;
  for (const IsaLevel level : kLevels) {
    if (supported(level)) best = level;
  }
  return best;
}

Expected<IsaLevel, std::string> chosen_isa_level() {
  const char* const wanted = std::getenv(kIsaVariable);
  if (wanted == nullptr || *wanted == '\0') return best_isa_level();
  const std::string prefix = std::string(kIsaVariable) + "=" + wanted;
  const std::optional<IsaLevel> level = isa_level_from(wanted);
  if (!level) {
    return Unexpected{prefix +
                      " names no instruction-set level; portable, avx2, avx512 or avx512_bf16"};
  }
  if (!supported(*level)) {
    return Unexpected{prefix + " is not supported by this CPU; the best here is " +
                      std::string(to_string(best_isa_level()))};
  }
  return *level;
}

const KernelTable& kernels(IsaLevel level) {
#if defined(__x86_64__)
  switch (level) {
    case IsaLevel::portable:
      return portable_kernels();
    case IsaLevel::avx2:
      return avx2_kernels();
    case IsaLevel::avx512:
      return avx512_kernels();
    case IsaLevel::avx512_bf16:
      return avx512_bf16_kernels();
  }
#endif
  static_cast<void>(level);
  return portable_kernels();
}

const OpTable& op_table(IsaLevel level) {
#if defined(__x86_64__)
  switch (level) {
    case IsaLevel::portable:
      return portable_ops();
    case IsaLevel::avx2:
      return avx2_ops();
    case IsaLevel::avx512:
    case IsaLevel::avx512_bf16:  // its dot instruction is nothing to elementwise work
      return avx512_ops();
  }
#endif
  static_cast<void>(level);
  return portable_ops();
}

}  // namespace moegauge::cpu
