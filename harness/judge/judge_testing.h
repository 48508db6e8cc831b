// What the tests of verdicts share: a policy, and the verdict on a fake case after one change.
#pragma once

#include <functional>
#include <regex>
#include <string>

#include "harness/judge/fake_result.h"
#include "harness/judge/judge.h"

namespace moegauge {

// 5% slower fails, processes differ by 1.4%; below, the limits of bf16.
inline Policy policy() {
  return {.name = "test",
          .confidence = 0.95,
          .strict = false,
          .latency = {{.ratio_limit = 1.05, .between_runs = 0.014, .floor_us = 0.5}},
          .error = {{.growth_limit = 1.03, .growth_floor = 1e-6}}};
}

inline ErrorLimits limits(const CaseRecord&, const CheckResult&) { return {0.003, 0.01}; }

inline Judgement judged(const Result& result, const Result& baseline, const Policy& p = policy(),
                        const std::string& filter = "*") {
  return judge(result, baseline, p, limits, filter);
}

// The verdict on the first case after `change` was made to it.
inline CaseVerdict after(const std::function<void(CaseRecord&)>& change,
                         const Policy& p = policy()) {
  Result result = fake_result();
  change(result.cases[0]);
  return judged(result, fake_result(), p).cases[0];
}

inline CaseVerdict after_measured(const std::function<void(Measured&)>& change,
                                  const Policy& p = policy()) {
  return after([&](CaseRecord& record) { change(std::get<Measured>(record.outcome)); }, p);
}

// Whether its sentence has a clause that is an order to whoever reads it, or says that there is
// none.
inline bool says_what_to_do(const Finding& finding) {
  static const std::regex order(
      R"(([;:,] |\bor )(find|record|run|measure|mend|correct|make|repeat|ask|ingest|serve|choose)"
      R"(|build|add|judge|give|so that the gain is kept|nothing to (do|judge|compare))\b)");
  return std::regex_search(finding.sentence(), order);
}

}  // namespace moegauge
