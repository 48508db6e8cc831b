// How often pairs of two builds that are the same are called different, and how often a case 3%
// slower is found: by simulation of what `compare --exec-a --exec-b` judges by, on noise that it
// was not designed for.
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

constexpr std::size_t cases = 50, runs = 1500, pairs = 20;
constexpr double spread = 0.014;

// A B, B A, ...: the machine drifts by two spreads in all.
std::vector<CaseEvidence> measured(NoisyMachine& machine) {
  std::vector<CaseEvidence> evidence(cases);
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    for (const bool first : {true, false}) {
      machine.next_process(1.0 / static_cast<double>(pairs));
      const bool is_a = first == (pair % 2 == 0);
      for (CaseEvidence& one : evidence)
        (is_a ? one.baseline : one.now).push_back(std::log(100) + machine.deviation());
    }
    for (CaseEvidence& one : evidence) one.pairs.push_back(one.now.back() - one.baseline.back());
  }
  return evidence;
}

struct Counted {
  std::size_t alarms = 0, caught = 0;
};

std::size_t changes_in(const std::vector<CaseEvidence>& evidence, const Policy& policy,
                       bool& first) {
  std::vector<ProcessCase> list;
  for (const CaseEvidence& one : evidence) list.push_back({&one, &policy.latency.front()});
  std::size_t found = 0;
  const std::vector<LatencyVerdict> verdicts = judge_pairs(list, policy);
  for (const LatencyVerdict& verdict : verdicts) {
    const Change change = verdict.numbers->change;
    found += change == Change::slower || change == Change::faster;
  }
  first = verdicts.front().numbers->change == Change::slower;
  return found;
}

TEST(PairsOfBuilds, RarelyDifferWhereNothingChangedAndShowAChangeOfThreePercent) {
  const Policy p = policy();
  for (const NoiseKind& kind : noise_kinds) {
    NoisyMachine machine(kind.noise, spread, 20261130);
    Counted counted;
    for (std::size_t run = 0; run < runs; ++run) {
      std::vector<CaseEvidence> evidence = measured(machine);
      bool first = false;
      counted.alarms += changes_in(evidence, p, first) > 0;
      for (double& pair : evidence.front().pairs) pair += std::log(1.03);
      for (double& value : evidence.front().now) value += std::log(1.03);
      changes_in(evidence, p, first);
      counted.caught += first;
    }
    const double alarms = binomial_upper_limit(counted.alarms, runs, 0.95);
    const double power = binomial_lower_limit(counted.caught, runs, 0.95);
    std::printf(
        "  %-14s %zu runs of %zu cases, %zu pairs: false alarms in %zu (upper 95%% limit "
        "%.2f%%), 3%% caught in %zu (lower 95%% limit %.2f%%)\n",
        kind.name, runs, cases, pairs, counted.alarms, 100 * alarms, counted.caught, 100 * power);
    EXPECT_LE(alarms, 0.01) << kind.name;
    // One process in fifty is 5 to 30% slow: that costs pairs, docs/method.md.
    EXPECT_GE(power, kind.noise == Noise::outliers ? 0.85 : 0.95) << kind.name;
  }
}

}  // namespace
}  // namespace moegauge
