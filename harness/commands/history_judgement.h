// A verdict on a result by what a history holds of its cases.
#pragma once

#include <string>
#include <vector>

#include "harness/history/baseline.h"
#include "harness/judge/calibration.h"
#include "harness/judge/judge.h"

namespace moegauge {

// `processes` are several runs of the same cases. Known issues of the policy are not applied yet.
Judgement judge_by_history(std::vector<Result> processes, const Policy& policy,
                           const ShippedLimits& shipped, const Calibration& calibration,
                           const HistoryBaselineSettings& settings, HistoryStore& store);

}  // namespace moegauge
