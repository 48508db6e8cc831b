// Check, then time, for single ops: whether a plan returns what the op's truth says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "reference/ops/op.h"

namespace moegauge {

// What a plan's outputs are held against.
struct OpYardstick {
  const Op& op;
  const OpProblem& problem;
  const std::vector<Tensor>& inputs;  // what `truth` is the truth of
  const OpTruth& truth;
  const std::vector<Tensor>& others;  // different inputs, for the run before
};

struct OpAnswer {
  OpErrors errors = {};
  std::vector<Tensor> outputs = {};  // of the first poisoned run
};

// Runs the inputs, each time on poisoned buffers: once one call; once each weight set; and once
// `request` as the timing will run it, so that every slot, set and launch path that is timed has
// answered. All must be right, and the same in every bit where the op leaves no order open. Other
// inputs run before, so that what they leave in a workspace is wrong. The fault may be a broken
// contract: an output that is as it was after poison().
Expected<OpAnswer, Fault> check_op(OpPlan& plan, const OpYardstick& yardstick,
                                   const RunRequest& request, std::int64_t weight_sets);

// After the timing: slot 0 once more, poisoned before.
Expected<OpErrors, Fault> check_op_replay(OpPlan& plan, const OpYardstick& yardstick,
                                          const RunRequest& request);

}  // namespace moegauge
