// The two kinds of verdict; judge_rows.cc puts them together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/endtoend/points.h"
#include "harness/judge/judge.h"

namespace moegauge {

struct ServingSides {
  const EndToEndPoint& now;
  const EndToEndPoint& then;
  const std::map<std::string, std::string>& suspects_now;
  const std::map<std::string, std::string>& suspects_then;
};
// One per number that is better or worse; at least one.
std::vector<CaseVerdict> judge_serving(const ServingSides& sides, const Policy& policy);

CaseVerdict judge_accuracy(const EndToEndPoint& now, const EndToEndPoint& then,
                           const Policy& policy);

// What else is not as it was: machine, arguments, tool.
std::vector<std::string> changes_between(const EndToEndPoint& now, const EndToEndPoint& then);

}  // namespace moegauge
