// How often `gate --history` calls something changed where nothing did, and what it finds: by
// simulation of the code itself, over series of nights on noise that it was not designed for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/history/baseline.h"
#include "harness/history/memory_store_testing.h"
#include "harness/judge/judge_testing.h"
#include "harness/statistics/distributions.h"
#include "harness/statistics/noise_testing.h"

namespace moegauge {
namespace {

constexpr std::size_t cases = 20, nights_before = 30, slow_every = 10;
constexpr double spread = 0.014;

struct Sizes {
  std::size_t processes;  // a night
  std::size_t last;       // HistoryBaselineSettings
  std::size_t runs;       // simulated
};

using Process = std::vector<double>;  // ln(latency) of each case, off its true value

Result result_of(const Process& process) {
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

std::vector<Result> results_of(const std::vector<Process>& night) {
  std::vector<Result> results;
  for (const Process& process : night) results.push_back(result_of(process));
  return results;
}

std::vector<Process> measured(NoisyMachine& machine, std::size_t processes, double drift) {
  std::vector<Process> night(processes, Process(cases));
  for (Process& process : night) {
    machine.next_process(drift / static_cast<double>(processes));
    for (double& value : process) value = machine.deviation();
  }
  return night;
}

void slow_down(std::vector<Process>& night, double ratio) {
  for (Process& process : night) process[0] += std::log(ratio);
}

// Summaries differ in their latencies alone, so that one is made from a result.
void add_night(MemoryStore& store, const std::vector<Process>& night,
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

Judgement gate(HistoryStore& store, const std::vector<Result>& results, const Sizes& sizes,
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

bool changed(const CaseVerdict& verdict) {
  return verdict.verdict == Verdict::fail || verdict.verdict == Verdict::improved;
}

TEST(GateOfAHistory, RarelyDiffersWhereNothingChanged) {
  constexpr double drift = 0.5 / nights_before;  // half a spread over all nights
  for (const Sizes& sizes : {Sizes{1, 10, 800}, Sizes{3, 30, 800}, Sizes{5, 50, 800}}) {
    for (const NoiseKind& kind : noise_kinds) {
      std::size_t alarms = 0, caught = 0;
      for (std::size_t run = 0; run < sizes.runs; ++run) {
        NoisyMachine machine(kind.noise, spread, 20261201 + run);
        MemoryStore store;
        for (std::size_t night = 0; night < nights_before; ++night)
          add_night(store, measured(machine, sizes.processes, drift));
        HistoryBaseline baseline;
        std::vector<Process> now = measured(machine, sizes.processes, drift);
        alarms += std::ranges::any_of(gate(store, results_of(now), sizes, baseline).cases, changed);
        if (run % slow_every != 0) continue;
        slow_down(now, 1.06);
        caught += gate(store, results_of(now), sizes, baseline).cases[0].verdict == Verdict::fail;
      }
      const double limit = binomial_upper_limit(alarms, sizes.runs, 0.95);
      std::printf(
          "  %zu a night, the last %2zu, %-14s %4zu runs of %zu cases: false alarms in %zu (upper "
          "95%% limit %.2f%%), 6%% slower called so in %.0f%%\n",
          sizes.processes, sizes.last, kind.name, sizes.runs, cases, alarms, 100 * limit,
          100 * static_cast<double>(caught * slow_every) / static_cast<double>(sizes.runs));
      EXPECT_LE(limit, 0.01) << kind.name;
    }
  }
}

struct Drifted {
  std::size_t nights = 0;  // until the first failure, or all that were tried
  double slower = 0;       // how much slower the case was then
  bool by_anchor_only = false;
};

// Night after night, judged and added as `gate --add` does: the first case slows by `a_night`.
Drifted drift_until_it_fails(const NoiseKind& kind, const Sizes& sizes, double a_night,
                             std::uint64_t seed) {
  constexpr std::size_t most = 60;
  NoisyMachine machine(kind.noise, spread, seed);
  MemoryStore store;
  for (std::size_t night = 0; night < nights_before; ++night)
    add_night(store, measured(machine, sizes.processes, 0));
  for (std::size_t night = 1; night <= most; ++night) {
    std::vector<Process> now = measured(machine, sizes.processes, 0);
    const double slower = std::pow(1 + a_night, static_cast<double>(night));
    slow_down(now, slower);
    HistoryBaseline baseline;
    const Judgement judgement = gate(store, results_of(now), sizes, baseline);
    const CaseVerdict& verdict = judgement.cases[0];
    if (verdict.verdict == Verdict::fail) {
      const bool rolling = std::ranges::any_of(verdict.findings, [](const Finding& f) {
        return f.verdict == Verdict::fail && f.facts.starts_with("against the last");
      });
      return {night, slower - 1, !rolling};
    }
    add_night(store, now, to_hold_back(judgement, baseline));
  }
  return {most, std::pow(1 + a_night, static_cast<double>(most)) - 1, false};
}

TEST(GateOfAHistory, FindsSlowDriftAgainstItsAnchor) {
  constexpr std::size_t series = 10;
  for (const Sizes& sizes : {Sizes{1, 10, 0}, Sizes{3, 30, 0}, Sizes{5, 50, 0}}) {
    for (const NoiseKind& kind : {noise_kinds[0], noise_kinds[4]}) {
      std::vector<double> slower;
      std::size_t by_anchor = 0;
      for (std::size_t one = 0; one < series; ++one) {
        const Drifted drifted = drift_until_it_fails(kind, sizes, 0.003, 20261201 + one);
        slower.push_back(drifted.slower);
        by_anchor += drifted.by_anchor_only;
      }
      std::ranges::sort(slower);
      std::printf(
          "  %zu a night, the last %2zu, %-14s %zu series, 0.3%% slower every night: found at "
          "+%.1f%% (median), +%.1f%% (worst), by the anchor alone in %zu\n",
          sizes.processes, sizes.last, kind.name, series, 100 * slower[series / 2],
          100 * slower.back(), by_anchor);
      // One process against many fails beyond the policy's outlier_ratio only.
      if (sizes.processes == 1) continue;
      EXPECT_LE(slower.back(), 0.12) << kind.name;
      EXPECT_GE(by_anchor, series / 2) << kind.name;
    }
  }
}

// What fails is no baseline: a slow-down that nobody mends fails every night, and not the first
// only.
TEST(GateOfAHistory, FailsEveryNightOfASlowDownThatNobodyAccepts) {
  const Sizes sizes{5, 50, 0};
  for (const NoiseKind& kind : {noise_kinds[0], noise_kinds[4]}) {
    NoisyMachine machine(kind.noise, spread, 20261201);
    MemoryStore store;
    for (std::size_t night = 0; night < nights_before; ++night)
      add_night(store, measured(machine, sizes.processes, 0));
    std::size_t failed = 0;
    constexpr std::size_t nights = 60;
    for (std::size_t night = 0; night < nights; ++night) {
      std::vector<Process> now = measured(machine, sizes.processes, 0);
      slow_down(now, 1.08);
      HistoryBaseline baseline;
      const Judgement judgement = gate(store, results_of(now), sizes, baseline);
      failed += judgement.cases[0].verdict == Verdict::fail;
      add_night(store, now, to_hold_back(judgement, baseline));
    }
    std::printf("  8%% slower for %zu nights, %s: %zu fail\n", nights, kind.name, failed);
    EXPECT_GE(failed, nights * 9 / 10) << kind.name;
  }
}

}  // namespace
}  // namespace moegauge
