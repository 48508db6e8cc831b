// What `gate --history --add` finds night after night: slow drift, and a slow-down that nobody
// mends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/history/nights_testing.h"

namespace moegauge {
namespace {

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
