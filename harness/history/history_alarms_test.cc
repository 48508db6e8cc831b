// How often `gate --history` calls something changed where nothing did: by simulation of the code
// itself, on noise that it was not designed for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/history/nights_testing.h"
#include "harness/statistics/distributions.h"

namespace moegauge {
namespace {

constexpr std::size_t slow_every = 10;

bool changed(const CaseVerdict& verdict) {
  return verdict.verdict == Verdict::fail || verdict.verdict == Verdict::improved;
}

TEST(GateOfAHistory, RarelyDiffersWhereNothingChanged) {
  constexpr double drift = 0.5 / nights_before;  // half a spread over all nights
  for (const Sizes& sizes : {Sizes{1, 10, 500}, Sizes{3, 30, 800}, Sizes{5, 50, 500}}) {
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

}  // namespace
}  // namespace moegauge
