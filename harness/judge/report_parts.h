// What several report formats share.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/judge.h"

namespace moegauge {

// Whether somebody must do something about it.
bool needs_person(Verdict verdict);
// Also where nothing is wrong but something else changed.
bool needs_person(const CaseVerdict& verdict);

// By verdict, then by how much slower.
std::vector<const CaseVerdict*> worst_first(const Judgement& judgement);

struct LatencyCells {  // "-" where there is none
  std::string result = "-", baseline = "-", ratio = "-", interval = "-";
};
LatencyCells latency_cells(const CaseVerdict& verdict);

// What a number of serving or a score is, side by side with another: better, same, worse, not
// worse, or why neither can be said.
std::string number_outcome(const CaseVerdict& verdict);

}  // namespace moegauge
