#include "kernels/backend.h"

namespace moegauge {

std::string_view to_string(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::device_absent:
      return "device_absent";
    case RefusalReason::op:
      return "op";
    case RefusalReason::scheme:
      return "scheme";
    case RefusalReason::activation:
      return "activation";
    case RefusalReason::router_weight_on_input:
      return "router_weight_on_input";
    case RefusalReason::gate_up_order:
      return "gate_up_order";
    case RefusalReason::expert_bias:
      return "expert_bias";
    case RefusalReason::shape:
      return "shape";
    case RefusalReason::memory:
      return "memory";
    case RefusalReason::instruction_set:
      return "instruction_set";
    case RefusalReason::config_unknown_key:
      return "config_unknown_key";
    case RefusalReason::config_value:
      return "config_value";
  }
  return "unknown";
}

std::optional<Refusal> Backend::refuses_on(std::string_view, const Problem& problem) const {
  auto refusal = refuses(problem);
  const bool of_machine = refusal && (refusal->reason == RefusalReason::device_absent ||
                                      refusal->reason == RefusalReason::memory);
  return of_machine ? std::nullopt : refusal;
}

std::optional<Refusal> Backend::refuses_op(const OpProblem& problem) const {
  return Refusal{RefusalReason::op, "the " + std::string(name()) + " backend has no kernel for " +
                                        problem.op + " alone; it serves whole layers"};
}

std::optional<Refusal> Backend::refuses_op_config(const OpProblem& problem, const Config&) const {
  return refuses_op(problem);
}

Expected<std::unique_ptr<LoadedOp>, Fault> Backend::load_op(const OpProblem& problem,
                                                            std::span<const Tensor>, int) const {
  return Unexpected{Fault{FaultKind::error, refuses_op(problem)->sentence}};
}

Expected<Ceilings, Fault> Backend::measure_op_ceilings(const OpProblem& problem) const {
  return Unexpected{Fault{FaultKind::error, refuses_op(problem)->sentence}};
}

}  // namespace moegauge
