// The problem of a single op that a case is about.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/suite/suite.h"
#include "harness/workload/replay_file.h"
#include "reference/base/expected.h"
#include "reference/op_problem.h"

namespace moegauge {

// Described. The error says why the op is not defined for the layer or scheme, one sentence. Throws
// InputError as problem_of does, and where a tensor of the file does not fit.
Expected<OpProblem, std::string> described_op(const CaseCoordinates& c,
                                              const std::filesystem::path& root);

// What a tensor must be in a file, its usual dtype first.
TensorForm form_of(const TensorSpec& spec);

// Names under which a dump keeps the answers to a described problem.
std::vector<std::string> answer_names(const OpProblem& problem);

}  // namespace moegauge
