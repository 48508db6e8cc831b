#include "harness/measure/op_check.h"

#include <algorithm>
#include <utility>

namespace moegauge {
namespace {

using Outputs = std::vector<Tensor>;

Expected<Outputs, Fault> fetch(OpPlan& plan, const OpProblem& problem, int slot) {
  Outputs outputs = make_tensors(problem.outputs);
  if (auto fault = plan.fetch(slot, outputs)) return Unexpected{std::move(*fault)};
  return outputs;
}

// Every output must be what `poison` makes of it: one that is not would vouch for a kernel that
// wrote nothing.
std::optional<Fault> poisoned(OpPlan& plan, const OpProblem& problem) {
  if (auto fault = plan.poison()) return fault;
  Outputs right = make_tensors(problem.outputs);
  for (Tensor& tensor : right) poison(tensor);
  for (int slot = 0; slot < plan.slots(); ++slot) {
    auto outputs = fetch(plan, problem, slot);
    if (!outputs) return std::move(outputs).error();
    for (std::size_t i = 0; i < right.size(); ++i) {
      if ((*outputs)[i].bytes == right[i].bytes) continue;
      return Fault{FaultKind::error, "poison() left " + right[i].spec.name + " of slot " +
                                         std::to_string(slot) + " as it was"};
    }
  }
  return std::nullopt;
}

std::optional<Fault> poisoned_run(OpPlan& plan, const OpProblem& problem,
                                  const RunRequest& request) {
  if (auto fault = poisoned(plan, problem)) return fault;
  auto seconds = plan.run(request);
  if (!seconds) return std::move(seconds).error();
  return std::nullopt;
}

RunRequest one_call(RunRequest request, std::int64_t set = 0) {
  request.calls = 1;
  request.first_set = set;
  return request;
}

// Whether a later answer is as right as the first.
class SameAgain {
 public:
  SameAgain(const OpYardstick& yardstick, const Outputs& first)
      : yardstick_(yardstick), first_(first) {}

  std::optional<std::string> differs(const Outputs& again, const std::string& where) const {
    if (yardstick_.op.order_is_open()) {
      auto wrong = yardstick_.truth.judge(again).wrong;
      if (wrong) *wrong += " (" + where + ", right at first)";
      return wrong;
    }
    for (std::size_t i = 0; i < again.size(); ++i) {
      if (auto wrong = differs(first_[i], again[i], where)) return wrong;
    }
    return std::nullopt;
  }

 private:
  static std::optional<std::string> differs(const Tensor& first, const Tensor& again,
                                            const std::string& where) {
    if (first.bytes == again.bytes) return std::nullopt;
    const auto at = std::ranges::mismatch(first.bytes, again.bytes).in1 - first.bytes.begin();
    return "not deterministic: two runs of the same inputs differ, first at " + first.spec.name +
           "[" + std::to_string(at / element_bytes(first.spec.type)) + "] (" + where + ")";
  }

  const OpYardstick& yardstick_;
  const Outputs& first_;
};

std::optional<Fault> set_all(OpPlan& plan, const std::vector<Tensor>& inputs) {
  for (int slot = 0; slot < plan.slots(); ++slot) {
    if (auto fault = plan.set_inputs(slot, inputs)) return fault;
  }
  return std::nullopt;
}

}  // namespace

Expected<OpAnswer, Fault> check_op(OpPlan& plan, const OpYardstick& yardstick,
                                   const RunRequest& request, std::int64_t weight_sets) {
  const OpProblem& problem = yardstick.problem;
  if (auto fault = plan.set_inputs(0, yardstick.others)) return Unexpected{std::move(*fault)};
  if (auto seconds = plan.run(one_call(request)); !seconds) {
    return Unexpected{std::move(seconds).error()};
  }
  if (auto fault = set_all(plan, yardstick.inputs)) return Unexpected{std::move(*fault)};

  if (auto fault = poisoned_run(plan, problem, one_call(request))) {
    return Unexpected{std::move(*fault)};
  }
  const auto first = fetch(plan, problem, 0);
  if (!first) return Unexpected{first.error()};
  OpErrors errors = yardstick.truth.judge(*first);
  const SameAgain again(yardstick, *first);
  const auto look = [&](int slot, const std::string& where) -> std::optional<Fault> {
    auto outputs = fetch(plan, problem, slot);
    if (!outputs) return std::move(outputs).error();
    errors.wrong = again.differs(*outputs, where);
    return std::nullopt;
  };
  for (std::int64_t set = 1; set < weight_sets && !errors.wrong; ++set) {
    auto fault = poisoned_run(plan, problem, one_call(request, set));
    if (!fault) fault = look(0, "weight set " + std::to_string(set));
    if (fault) return Unexpected{std::move(*fault)};
  }
  if (errors.wrong) return OpAnswer{std::move(errors), *first};
  if (auto fault = poisoned_run(plan, problem, request)) return Unexpected{std::move(*fault)};
  const auto slots_run = std::min<std::int64_t>(plan.slots(), request.calls);
  for (int slot = 0; slot < slots_run && !errors.wrong; ++slot) {
    if (auto fault = look(slot, "slot " + std::to_string(slot))) {
      return Unexpected{std::move(*fault)};
    }
  }
  return OpAnswer{std::move(errors), *first};
}

Expected<OpErrors, Fault> check_op_replay(OpPlan& plan, const OpYardstick& yardstick,
                                          const RunRequest& request) {
  if (auto fault = plan.set_inputs(0, yardstick.inputs)) return Unexpected{std::move(*fault)};
  if (auto fault = poisoned_run(plan, yardstick.problem, one_call(request))) {
    return Unexpected{std::move(*fault)};
  }
  const auto outputs = fetch(plan, yardstick.problem, 0);
  if (!outputs) return Unexpected{outputs.error()};
  return yardstick.truth.judge(*outputs);
}

}  // namespace moegauge
