#include "kernels/cpu/ops/cpu_op.h"

#include <algorithm>

#include "kernels/cpu/machine.h"

namespace moegauge::cpu {
namespace {

constexpr const char* kThreads = "num_threads";

}  // namespace

Config CpuOp::default_config(const OpProblem&) const {
  return {.values = {{kThreads, machine().processors}}};
}

std::optional<Refusal> CpuOp::refuses_config(const OpProblem&, const Config& config) const {
  for (const auto& [key, value] : config.values) {
    if (key != kThreads) {
      return Refusal{RefusalReason::config_unknown_key,
                     "unknown key " + key + "; the cpu backend's " + std::string(name()) +
                         " knows num_threads"};
    }
    if (value < 1 || value > machine().processors) {
      return Refusal{RefusalReason::config_value,
                     "num_threads is " + std::to_string(value) + "; it must lie in [1, " +
                         std::to_string(machine().processors) +
                         "], as this process may use that many processors"};
    }
  }
  return std::nullopt;
}

const CpuOp* find_cpu_op(std::string_view name) {
  const auto found =
      std::ranges::find_if(cpu_ops(), [&](const CpuOp* op) { return op->name() == name; });
  return found == cpu_ops().end() ? nullptr : *found;
}

int op_threads(const Config& config) {
  const auto asked = config.values.find(kThreads);
  return asked == config.values.end() ? machine().processors : static_cast<int>(asked->second);
}

}  // namespace moegauge::cpu
