#include "reference/ops/op.h"

#include <algorithm>
#include <cmath>

namespace moegauge {

std::optional<std::string> Op::not_finite(const OpProblem&, std::span<const Tensor>,
                                          std::span<const Tensor> outputs) const {
  for (const Tensor& output : outputs) {
    const TensorType type = output.spec.type;
    if (type != TensorType::fp32 && type != TensorType::bf16 && type != TensorType::fp16) continue;
    const std::vector<double> values = decoded(output);
    const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
    if (bad != values.end()) {
      return output.spec.name + "[" + std::to_string(bad - values.begin()) + "]";
    }
  }
  return std::nullopt;
}

std::vector<Tensor> Op::draw_beside(const OpProblem& problem, const OpDraw& draw,
                                    std::vector<Tensor> given) const {
  std::vector<Tensor> inputs;
  if (given.size() < problem.inputs.size()) {
    inputs = draw_inputs(problem, draw);
  } else {
    inputs = make_tensors(problem.inputs);
  }
  for (Tensor& tensor : given) {
    *std::ranges::find(inputs, tensor.spec.name, [](const Tensor& t) { return t.spec.name; }) =
        std::move(tensor);
  }
  return inputs;
}

const Op* find_op(std::string_view name) {
  const auto found =
      std::ranges::find_if(all_ops(), [&](const Op* op) { return op->name() == name; });
  return found == all_ops().end() ? nullptr : *found;
}

}  // namespace moegauge
