// From the words of a suite to something that can be run: which backend, which config. Everything
// here is decided by rule and costs no measuring time.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "harness/result/record.h"
#include "harness/suite/suite.h"
#include "harness/workload/problem.h"
#include "kernels/backend.h"
#include "reference/base/expected.h"

namespace moegauge {

struct PreparedCase {
  const Backend* backend = nullptr;
  Problem problem;  // with the case's tokens
  Config config;
  ConfigRecord config_record;  // hash is filled in once something was compiled
  bool extrapolated = false;   // tokens outside the tuned file's range
};

// Why a case cannot run: unsupported (absent device, refusal, with every backend's reason for
// `auto`), refused_config or skipped ("no tuned file NAME").
struct Unprepared {
  Unmeasured outcome;
  // Present, and the only one that could have run it; else null. Says on which device it is so.
  const Backend* backend = nullptr;
};

// Resolves `auto` to the first backend that does not refuse, and the config to numbers.
Expected<PreparedCase, Unprepared> prepare_case(const CaseCoordinates& c, const Problem& problem,
                                                std::span<const Backend* const> backends,
                                                const std::filesystem::path& root);

// The same for a single op. `problem` is described, with the case's tokens. There are no tuned
// files of single ops: such a config is skipped.
struct PreparedOp {
  const Backend* backend = nullptr;
  OpProblem problem;
  Config config;
  ConfigRecord config_record;
};
// The error is unsupported where the op is not defined for the layer or scheme. Throws InputError
// as problem_of does.
Expected<OpProblem, Unmeasured> op_problem_of(const CaseCoordinates& c,
                                              const std::filesystem::path& root);
Expected<PreparedOp, Unprepared> prepare_op(const CaseCoordinates& c, const OpProblem& problem,
                                            std::span<const Backend* const> backends);

// ConfigRecord::source of a config coordinate: default, tuned, file or inline.
std::string config_source(const std::string& config);

// What baselines are kept under: name/arch/units, nothing volatile.
std::string device_key(const Device& device);

}  // namespace moegauge
