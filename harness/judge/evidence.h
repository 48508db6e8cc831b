// What several processes say about a case's latency: the unit is the process, because the next one
// differs from this one by more than their samples show.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/judge/calibration.h"
#include "harness/result/record.h"
#include "harness/statistics/moderated.h"

namespace moegauge {

struct CaseEvidence {
  std::vector<double> now = {}, baseline = {};  // ln(median), one a process
  Variance known = {};          // of ln(median) between processes, from a calibration or history
  std::string known_from = {};  // "calibration of 10 processes"
  // What else the spread is from, where a side has several.
  std::string own_from = "the processes given";
  // ln(now / baseline) of each pair of fresh processes, one after the other; empty where processes
  // were not measured in turn. With two or more, these alone decide.
  std::vector<double> pairs = {};
};
using Evidence = std::map<std::string, CaseEvidence>;  // by case id

// A case counts where it is ok and was measured under the device, seed and executed scheme of the
// first result (baseline) that holds it ok.
Evidence gather(const std::vector<Result>& results, const std::vector<Result>& baselines,
                const Calibration& calibration);

// Results and baselines measured in turn: the i-th of one with the i-th of the other. A pair counts
// where both are ok and as the first that are.
Evidence gather_pairs(const std::vector<Result>& results, const std::vector<Result>& baselines);

// One result that stands for several processes of the same cases: each case as the first process
// has it, with the worst errors of them all; or as the first in which it is not ok, or was executed
// as something else.
Result representative(std::vector<Result> processes);

}  // namespace moegauge
