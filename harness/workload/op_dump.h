// What a checked case of a single op was given and gave, as a file that replays (docs/replay.md).
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "harness/suite/suite.h"
#include "harness/workload/workload.h"
#include "reference/op_problem.h"

namespace moegauge {

struct DumpedOp {
  const CaseCoordinates& coordinates;
  const OpProblem& problem;
  Generator generator = {};
  std::span<const Tensor> inputs, weights, outputs;
  std::span<const Tensor> answers;  // the oracle's (OpTruth::answers)
};

// Weights beyond max_dumped_weights are left out. Throws InputError where it cannot be written.
void write_op_dump(const std::filesystem::path& file, const DumpedOp& dumped);

}  // namespace moegauge
