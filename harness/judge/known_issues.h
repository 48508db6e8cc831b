// Failures that a policy lists, with a reason and a date.
#pragma once

#include <string>

#include "harness/judge/judge.h"

namespace moegauge {

// `today`: 2026-11-30, in UTC. A failure that an issue covers becomes a known one; cases of an
// issue that has expired fail. An issue that covers nothing is noted.
void apply_known_issues(Judgement& judgement, const Policy& policy, const std::string& today);

}  // namespace moegauge
