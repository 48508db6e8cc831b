// Verdicts on serving and accuracy, as those on cases: the same policy, the same reports.
#pragma once

#include <span>
#include <string>

#include "harness/judge/judge.h"

namespace moegauge {

// Adds a verdict per number of each serving point and per score to `judgement`, and what is to be
// said of many. Several results, or baselines, are several runs of the same points.
void judge_end_to_end(std::span<const Result> results, std::span<const Result> baselines,
                      const Policy& policy, const std::string& filter, Judgement& judgement);

}  // namespace moegauge
