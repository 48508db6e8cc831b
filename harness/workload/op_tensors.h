// Where a single op's tensors come from: drawn, or a file with what it lacks drawn.
#pragma once

#include <memory>
#include <vector>

#include "harness/workload/replay_file.h"
#include "harness/workload/workload.h"
#include "reference/ops/op.h"

namespace moegauge {

class OpTensors {
 public:
  // Throws InputError.
  OpTensors(const CaseCoordinates& c, const WorkloadSettings& settings);

  Generator generator() const { return generator_; }
  // How to draw for a problem of these cases.
  OpDraw draw(const std::string& routing, const OpProblem& problem, std::uint64_t stream) const;

  // Of the inputs of a described problem, what the file gives.
  GivenRows given_inputs(const OpProblem& problem) const;
  // Whether the file gives any tensor of the problem: what stood before a quantisation of all of
  // them is not known then.
  bool gives_any(const OpProblem& problem) const;

  std::vector<Tensor> weights(const Op& op, const OpProblem& problem, const OpDraw& draw) const;
  std::vector<Tensor> inputs(const Op& op, const OpProblem& problem, const OpDraw& draw) const;

 private:
  std::vector<Tensor> given(const std::vector<TensorSpec>& specs) const;

  const std::unique_ptr<ReplayFile> file_;  // nullptr where all is drawn
  Generator generator_;
  int unit_spread_;
};

}  // namespace moegauge
