// The parts of a case's verdict; judge.cc puts them together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/judge.h"

namespace moegauge {

// Puts the findings in order, worst first, and takes the verdict from them. At least one.
void settle(CaseVerdict& verdict);

struct LatencyVerdict {
  Finding finding = {};
  std::optional<LatencyJudgement> numbers = {};  // none where a side has too few samples
};
LatencyVerdict judge_latency(const Measured& result, const Measured& baseline,
                             const LatencyRule& rule, double confidence);

// Whether a case's processes, or a known spread, say more than one process's samples.
bool judged_by_processes(const CaseEvidence& evidence);

struct ProcessCase {
  const CaseEvidence* evidence = nullptr;
  const LatencyRule* rule = nullptr;
};
// Parallel to `cases`; every one judged_by_processes.
std::vector<LatencyVerdict> judge_latencies(std::span<const ProcessCase> cases,
                                            const Policy& policy);

// The same of fresh pairs measured in turn: at least two of every case.
std::vector<LatencyVerdict> judge_pairs(std::span<const ProcessCase> cases, const Policy& policy);

// The limits that ship with a case's scheme where the policy has none of its own.
ErrorLimits limits_in_force(const ErrorRule& rule, const std::optional<TotalRule>& total,
                            const ErrorLimits& shipped);

// The numbers that the two functions below judge, and what the format costs. `baseline` may be
// null.
std::vector<ErrorNumber> error_numbers(const CheckResult& check, const CheckResult* baseline,
                                       const ErrorLimits& limits);

// Absolute limits; only what is wrong is returned.
std::vector<Finding> judge_error(const CheckResult& check, const ErrorLimits& limits);
// Growth against the baseline; only what is wrong is returned.
std::vector<Finding> judge_error_growth(const CheckResult& check, const CheckResult& baseline,
                                        const ErrorRule& rule);

}  // namespace moegauge
