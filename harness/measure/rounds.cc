#include "harness/measure/rounds.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "harness/judge/statistics.h"

namespace moegauge {
namespace {

// Rows are taken where they are measured: the order and number of a report's runs depend on
// environment variables that Google Benchmark reads by itself.
class SilentReporter : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

constexpr double kNotRun = -1;

// Runs the members in `order`, one row each. A failure ends the round: the rows after it are
// skipped.
std::vector<double> run_round(std::span<const Member> members,
                              const std::vector<std::size_t>& order,
                              const std::function<void(std::size_t)>& before_row,
                              std::optional<Rounds::Failure>& failure) {
  std::vector<double> seconds_per_call(order.size(), kNotRun);
  for (std::size_t slot = 0; slot < order.size(); ++slot) {
    const std::size_t index = order[slot];
    const Member& member = members[index];
    double& measured = seconds_per_call[slot];
    const auto row = [&member, index, &measured, &before_row, &failure](benchmark::State& state) {
      if (failure) {
        state.SkipWithError("an earlier row of this round failed");
        return;
      }
      before_row(index);
      while (state.KeepRunningBatch(state.max_iterations)) {
        auto seconds = member.run(member.calls_per_row);
        if (!seconds) {
          failure = Rounds::Failure{index, std::move(seconds).error()};
          state.SkipWithError("the kernel failed");
          return;
        }
        state.SetIterationTime(*seconds);
        measured = *seconds / static_cast<double>(member.calls_per_row);
      }
    };
    benchmark::RegisterBenchmark(member.name.c_str(), row)
        ->Iterations(member.calls_per_row)
        ->Repetitions(1)
        ->UseManualTime();
  }
  SilentReporter reporter;
  // The filter is given, since the default one can be set by an environment variable.
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  benchmark::ClearRegisteredBenchmarks();
  const auto missing = std::ranges::find(seconds_per_call, kNotRun);
  if (!failure && missing != seconds_per_call.end()) {
    failure = Rounds::Failure{
        order[static_cast<std::size_t>(missing - seconds_per_call.begin())],
        Fault{FaultKind::infrastructure,
              "Google Benchmark ran only a part of the rows that were registered; is a BENCHMARK_* "
              "environment variable set?"}};
  }
  return seconds_per_call;
}

bool is_stable(const std::vector<double>& samples, const StoppingRule& rule) {
  const std::vector<double> means = round_means(samples);
  const MedianInterval interval = median_interval(means, rule.confidence);
  return interval.coverage >= rule.confidence &&
         interval.high - interval.low <= 2 * rule.relative_interval * median(means);
}

}  // namespace

std::vector<std::size_t> round_order(std::size_t members, std::uint64_t seed, std::int64_t round) {
  std::vector<std::size_t> order(members);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (members > 2) {
    // Fisher and Yates by hand: std::shuffle's draws differ between standard libraries.
    std::mt19937_64 engine(seed + 0x9E3779B97F4A7C15u * (static_cast<std::uint64_t>(round) + 1));
    for (std::size_t left = members; left > 1; --left) {
      std::swap(order[left - 1], order[engine() % left]);
    }
  }
  order.insert(order.end(), order.rbegin(), order.rend());
  return order;
}

std::int64_t min_rounds(const StoppingRule& rule) {
  const std::int64_t for_rows = (rule.min_rows + 1) / 2;
  const auto for_interval =
      static_cast<std::int64_t>(std::ceil(1 - std::log2(1 - rule.confidence)));
  return std::max(for_rows, for_interval);
}

Rounds measure_rounds(std::span<const Member> members, const StoppingRule& rule, std::uint64_t seed,
                      const std::function<void(std::size_t)>& before_row) {
  Rounds result;
  result.members.resize(members.size());
  if (members.empty()) return result;
  const std::int64_t least = min_rounds(rule);
  const double cap = rule.seconds_per_member * static_cast<double>(members.size());
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double spent = 0;
  for (bool done = false; !done;) {
    const auto order = round_order(members.size(), seed, result.rounds);
    const auto rows = run_round(members, order, before_row, result.failure);
    if (result.failure) return result;
    for (std::size_t i = 0; i < order.size(); ++i) {
      result.members[order[i]].seconds_per_call.push_back(rows[i]);
      spent += rows[i] * static_cast<double>(members[order[i]].calls_per_row);
    }
    ++result.rounds;
    spent = std::max(spent, std::chrono::duration<double>(Clock::now() - start).count());
    if (result.rounds < least) continue;
    bool all_stable = true;
    for (MemberRows& member : result.members) {
      member.stable = is_stable(member.seconds_per_call, rule);
      all_stable = all_stable && member.stable;
    }
    done = all_stable || spent >= cap || result.rounds >= rule.max_rounds;
  }
  return result;
}

}  // namespace moegauge
