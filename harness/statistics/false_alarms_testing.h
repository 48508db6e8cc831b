// The claim behind every verdict, by simulation: over thousands of runs of 500 cases in which
// nothing changed, how many runs have any change confirmed; and how often one case that became 3%
// slower is. The whole procedure as the gate uses it, on noise that it was not designed for.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/statistics/distributions.h"
#include "harness/statistics/noise_testing.h"
#include "harness/statistics/two_stage.h"

namespace moegauge {
namespace simulation {

inline constexpr std::size_t cases = 500;

struct Setting {
  double spread = 0;
  std::size_t baseline_processes = 0;
  std::uint64_t seed = 0;
};

struct Achieved {
  std::size_t runs = 0, false_alarms = 0, caught = 0;
  double candidates = 0, pairs = 0, measurements = 0;  // in all runs
};

inline std::size_t runs_wanted() {
  const char* text = std::getenv("MOEGAUGE_SIMULATED_RUNS");
  return text == nullptr ? 2000 : static_cast<std::size_t>(std::atoll(text));
}

class Simulation {
 public:
  Simulation(Noise noise, const Setting& setting, const StagePlan& plan)
      : setting_(setting), plan_(plan), machine_(noise, setting.spread, setting.seed) {
    baseline_.assign(cases, std::vector<double>(setting.baseline_processes));
    now_.assign(cases, std::vector<double>(plan.screening_processes));
  }

  void run(Achieved& achieved) {
    fill(baseline_);
    fill(now_);
    std::vector<CaseSamples> samples;
    for (std::size_t i = 0; i < cases; ++i) samples.push_back({now_[i], baseline_[i]});
    const Screening screening = screen(samples, aim_, 0.95);
    const std::vector<Screened>& screened = screening.cases;
    const std::optional<Variance>& prior = screening.prior;

    std::vector<std::size_t> candidates;
    for (std::size_t i = 0; i < cases; ++i) {
      if (screened[i].may_be_slower) candidates.push_back(i);
    }
    const std::size_t count = pairs_needed(*prior, candidates.size(), aim_);
    const std::vector<std::vector<double>> pairs = measure_pairs(candidates.size(), count);
    ++achieved.runs;
    achieved.candidates += static_cast<double>(candidates.size());
    achieved.pairs += static_cast<double>(count);
    achieved.measurements += static_cast<double>(plan_.screening_processes * cases) +
                             static_cast<double>(2 * candidates.size() * count);
    achieved.false_alarms += any_found(pairs, prior);
    achieved.caught += catches(screened, candidates, pairs, prior);
  }

 private:
  void fill(std::vector<std::vector<double>>& side) {
    for (std::size_t process = 0; process < side.front().size(); ++process) {
      // Nights lie between them: the machine drifts by half a spread over all.
      machine_.next_process(
          0.5 / static_cast<double>(setting_.baseline_processes + plan_.screening_processes));
      for (std::size_t i = 0; i < cases; ++i) side[i][process] = machine_.deviation();
    }
  }

  // Fresh processes in the order A B B A, over which the machine drifts by two spreads in all.
  std::vector<std::vector<double>> measure_pairs(std::size_t candidates, std::size_t count) {
    std::vector<std::vector<double>> pairs(candidates +
                                           1);  // the last: the case that is made slower
    const double step = 1.0 / static_cast<double>(count);
    std::vector<double> first(pairs.size());
    for (std::size_t pair = 0; pair < count; ++pair) {
      const bool now_first = pair % 2 == 1;
      machine_.next_process(step);
      for (double& value : first) value = machine_.deviation();
      machine_.next_process(step);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const double second = machine_.deviation();
        pairs[i].push_back(now_first ? first[i] - second : second - first[i]);
      }
    }
    return pairs;
  }

  bool any_found(const std::vector<std::vector<double>>& pairs,
                 const std::optional<Variance>& prior) const {
    std::vector<PairedCase> list;
    for (std::size_t i = 0; i + 1 < pairs.size(); ++i)
      list.push_back({pairs[i], Direction::slower});
    for (const Confirmation& c : confirm(list, prior, aim_, 0.95)) {
      if (c.found) return true;
    }
    return false;
  }

  // The run again, with its first case 3% slower: whether it is found.
  bool catches(const std::vector<Screened>& screened, const std::vector<std::size_t>& candidates,
               const std::vector<std::vector<double>>& pairs,
               const std::optional<Variance>& prior) const {
    const Screened& first = screened.front();
    // What the shift adds to the estimate is all that it changes.
    const double reach =
        student_upper_quantile(1 - aim_.screening_power, first.degrees_of_freedom) *
        first.standard_error;
    if (first.value + aim_.shift + reach < aim_.shift) return false;
    std::vector<double> slower = pairs.back();
    for (double& value : slower) value += aim_.shift;
    std::vector<PairedCase> list = {{slower, Direction::slower}};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i] != 0) list.push_back({pairs[i], Direction::slower});
    }
    return confirm(list, prior, aim_, 0.95).front().found.has_value();
  }

  const Aim aim_;
  const Setting setting_;
  const StagePlan plan_;
  NoisyMachine machine_;
  std::vector<std::vector<double>> baseline_, now_;
};

inline void check(const Setting& setting) {
  const Variance spread{setting.spread * setting.spread, Aim{}.most_prior};
  const StagePlan plan = plan_stages(spread, cases, setting.baseline_processes, Aim{});
  std::printf("spread %.1f%%: %zu processes against %zu, then pairs of the candidates\n",
              100 * setting.spread, plan.screening_processes, setting.baseline_processes);
  for (const NoiseKind& kind : noise_kinds) {
    Simulation simulation(kind.noise, setting, plan);
    Achieved a;
    for (std::size_t run = runs_wanted(); run > 0; --run) simulation.run(a);
    const double runs = static_cast<double>(a.runs);
    const double alarms = binomial_upper_limit(a.false_alarms, a.runs, 0.95);
    const double power = binomial_lower_limit(a.caught, a.runs, 0.95);
    std::printf(
        "  %-14s %zu runs: false alarms in %zu (upper 95%% limit %.2f%%), 3%% caught in %.2f%% "
        "(lower 95%% limit %.2f%%), %.1f candidates, %.1f pairs, %.0f device minutes at 1 s a "
        "case\n",
        kind.name, a.runs, a.false_alarms, 100 * alarms, 100 * static_cast<double>(a.caught) / runs,
        100 * power, a.candidates / runs, a.pairs / runs, a.measurements / runs / 60);
    EXPECT_LE(alarms, 0.01) << kind.name;
    EXPECT_GE(power, 0.95) << kind.name;
  }
}

}  // namespace simulation
}  // namespace moegauge
