// The parts of a case's verdict; judge.cc puts them together.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/judge.h"

namespace moegauge {

struct LatencyVerdict {
  Finding finding = {};
  std::optional<LatencyJudgement> numbers = {};  // none where a side has too few samples
};
LatencyVerdict judge_latency(const Measured& result, const Measured& baseline,
                             const LatencyRule& rule, double confidence);

// The numbers that the two functions below judge, and what the format costs. `baseline` may be
// null.
std::vector<ErrorNumber> error_numbers(const CheckResult& check, const CheckResult* baseline,
                                       const ErrorRule& rule, const TotalRule& total,
                                       const ErrorLimits& shipped);

// Absolute limits; only what is wrong is returned.
std::vector<Finding> judge_error(const CheckResult& check, const ErrorRule& rule,
                                 const TotalRule& total, const ErrorLimits& shipped);
// Growth against the baseline; only what is wrong is returned.
std::vector<Finding> judge_error_growth(const CheckResult& check, const CheckResult& baseline,
                                        const ErrorRule& rule);

}  // namespace moegauge
