// What a tuning came to, for people: the table for the pull request, and lists.
#pragma once

#include <string>

#include "harness/tune/tune.h"

namespace moegauge {

// Markdown: a row per batch size that was read back from the file, with the default beside it.
std::string pull_request_table(const TuneOutcome& outcome);

// Which keys were added, changed, kept, left or are unfinished, each with its reason.
std::string decision_list(const TuneOutcome& outcome);

// Candidates without a latency by what became of them, each named once with where it happened;
// empty where there are none.
std::string dropped_list(const TuneOutcome& outcome);

}  // namespace moegauge
