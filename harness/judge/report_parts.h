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

}  // namespace moegauge
