// lm-evaluation-harness's --log_samples files: a line of JSON per question.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "harness/endtoend/verdicts.h"

namespace moegauge {

// By doc_id and filter: answered rightly?
using SampleScores = std::map<std::pair<std::int64_t, std::string>, bool>;

// Throws InputError where a line is no JSON, lacks the metric, or repeats a question.
SampleScores read_samples(const std::string& text, const std::string& metric,
                          const std::string& where);

// Throws InputError where the two runs are not of the same questions.
Discordant discordant_of(const SampleScores& now, const SampleScores& then,
                         const std::string& filter, const std::string& where);

}  // namespace moegauge
