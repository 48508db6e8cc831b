// Nights of a noisy machine, gated against a history and added to it, for simulations.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "harness/history/baseline.h"
#include "harness/history/memory_store_testing.h"
#include "harness/judge/judge_testing.h"
#include "harness/statistics/noise_testing.h"

namespace moegauge {

inline constexpr std::size_t cases = 20, nights_before = 30;
inline constexpr double spread = 0.014;

struct Sizes {
  std::size_t processes;  // a night
  std::size_t last;       // HistoryBaselineSettings
  std::size_t runs;       // simulated
};

using Process = std::vector<double>;  // ln(latency) of each case, off its true value

inline Result result_of(const Process& process) {
  Result result;
  result.machine = {{"date", "2026-09-21T00:00:00+00:00"}};
  result.context = {{"suite", "fake"}};
  for (std::size_t i = 0; i < process.size(); ++i) {
    CaseRecord record = fake_case(static_cast<std::int64_t>(i) + 1, 100 * std::exp(process[i]));
    std::get<Measured>(record.outcome).latency.samples.clear();  // the interval stands for them
    result.cases.push_back(std::move(record));
  }
  return result;
}

inline std::vector<Result> results_of(const std::vector<Process>& night) {
  std::vector<Result> results;
  for (const Process& process : night) results.push_back(result_of(process));
  return results;
}

inline std::vector<Process> measured(NoisyMachine& machine, std::size_t processes, double drift) {
  std::vector<Process> night(processes, Process(cases));
  for (Process& process : night) {
    machine.next_process(drift / static_cast<double>(processes));
    for (double& value : process) value = machine.deviation();
  }
  return night;
}

inline void slow_down(std::vector<Process>& night, double ratio) {
  for (Process& process : night) process[0] += std::log(ratio);
}

// Summaries differ in their latencies alone, so that one is made from a result.
inline void add_night(MemoryStore& store, const std::vector<Process>& night,
                      const std::set<std::string>& held = {}) {
  static const RunSummary like = summarise(result_of(Process(cases)), {}, "r.json");
  for (const Process& process : night) {
    RunSummary summary = like;
    summary.run.run_time += 3600 * static_cast<std::int64_t>(store.runs().size());
    for (std::size_t i = 0; i < process.size(); ++i) {
      HistoryPoint& point = summary.cases[i].point;
      for (double* number : {&point.median, &point.ci_low, &point.ci_high, &point.centre})
        *number *= std::exp(process[i]);
      point.held = held.contains(summary.cases[i].id);
    }
    store.add(summary, "me@here", 1);
  }
}

inline Judgement gate(HistoryStore& store, const std::vector<Result>& results, const Sizes& sizes,
                      HistoryBaseline& baseline) {
  Policy p = policy();
  p.latency.front().outlier_ratio = 1.35;
  baseline = history_baseline(store, results, {}, {.last = sizes.last});
  const Result now = representative(results);
  const auto against = [&](const HistorySide& side) {
    return judge(now, side.result, p, limits, "*", side.evidence);
  };
  return judge_against(baseline, against(baseline.rolling), against(baseline.anchor), "accept it");
}

}  // namespace moegauge
