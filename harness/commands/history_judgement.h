// A verdict on a result by what a history holds of its cases.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/history/baseline.h"
#include "harness/judge/calibration.h"
#include "harness/judge/judge.h"

namespace moegauge {

struct JudgedByHistory {
  Judgement judgement = {};
  std::set<std::string> held = {};  // to_hold_back
};

// `processes` are several runs of the same cases. Known issues of the policy are not applied yet.
JudgedByHistory judge_by_history(std::vector<Result> processes, const Policy& policy,
                                 const ShippedLimits& shipped, const Calibration& calibration,
                                 const HistoryBaselineSettings& settings, HistoryStore& store);

}  // namespace moegauge
