// How often `gate` over several processes a side calls a run different in which nothing changed: by
// simulation, on noise that it was not designed for, as much as all of a process's cases may share.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "harness/judge/findings.h"
#include "harness/judge/judge_testing.h"
#include "harness/statistics/distributions.h"
#include "harness/statistics/noise_testing.h"

namespace moegauge {
namespace {

constexpr std::size_t cases = 50, runs = 1000, shifted_every = 10;
constexpr double spread = 0.014;

struct Sizes {
  std::size_t now, baseline;
};

std::vector<CaseEvidence> measured(NoisyMachine& machine, const Sizes& sizes) {
  std::vector<CaseEvidence> evidence(cases);
  const std::size_t count = sizes.now + sizes.baseline;
  for (std::size_t process = 0; process < count; ++process) {
    // Nights lie between them: the machine drifts by half a spread over all.
    machine.next_process(0.5 / static_cast<double>(count));
    for (CaseEvidence& one : evidence) {
      (process < sizes.baseline ? one.baseline : one.now)
          .push_back(std::log(100) + machine.deviation());
    }
  }
  return evidence;
}

struct Seen {
  bool any = false;    // a change of any case
  bool first = false;  // the first case slower
};

Seen changes_in(const std::vector<CaseEvidence>& evidence, const Policy& policy) {
  std::vector<ProcessCase> list;
  for (const CaseEvidence& one : evidence) list.push_back({&one, &policy.latency.front()});
  const std::vector<LatencyVerdict> verdicts = judge_latencies(list, policy);
  Seen seen{.first = verdicts.front().numbers->change == Change::slower};
  for (const LatencyVerdict& verdict : verdicts) {
    const Change change = verdict.numbers->change;
    seen.any = seen.any || change == Change::slower || change == Change::faster;
  }
  return seen;
}

TEST(ProcessesOfAGate, RarelyDifferWhereNothingChanged) {
  Policy p = policy();
  p.latency.front().outlier_ratio = 1.35;
  for (const Sizes& sizes : {Sizes{1, 8}, Sizes{3, 3}, Sizes{3, 8}, Sizes{5, 20}, Sizes{12, 12}}) {
    for (const NoiseKind& kind : noise_kinds) {
      NoisyMachine machine(kind.noise, spread, 20261201);
      std::size_t alarms = 0, caught = 0;
      for (std::size_t run = 0; run < runs; ++run) {
        std::vector<CaseEvidence> evidence = measured(machine, sizes);
        alarms += changes_in(evidence, p).any;
        if (run % shifted_every != 0) continue;
        for (double& value : evidence.front().now) value += std::log(1.06);
        caught += changes_in(evidence, p).first;
      }
      const double limit = binomial_upper_limit(alarms, runs, 0.95);
      std::printf(
          "  %2zu against %2zu, %-14s %zu runs of %zu cases: false alarms in %zu (upper 95%% "
          "limit %.2f%%), 6%% slower called so in %.0f%%\n",
          sizes.now, sizes.baseline, kind.name, runs, cases, alarms, 100 * limit,
          100 * static_cast<double>(caught) * shifted_every / runs);
      EXPECT_LE(limit, 0.01) << kind.name;
    }
  }
}

}  // namespace
}  // namespace moegauge
