// The timing itself: rivals measured in interleaved rounds, driven by Google Benchmark, until every
// median is known well enough.
//
// One round runs a permutation of the members and then its reverse, so that with two members it is
// A B B A: a drift that is linear over the round (clocks, temperature, a neighbour) cancels in the
// round's ratio. Each run of a member is one *row*: `calls_per_row` consecutive calls, whose mean
// is one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/statistics.h"
#include "kernels/backend.h"

namespace moegauge {

struct Member {
  std::string name;  // the benchmark's name: the case id
  std::int64_t calls_per_row = 1;
  // Total seconds of that many consecutive calls, by the device's own clock.
  std::function<Expected<double, Fault>(std::int64_t calls)> run;
};

struct StoppingRule {
  // Half the width of the median's confidence interval over the median, by rounds.
  double relative_interval = 0.01;
  double confidence = kSequentialConfidence;
  int min_rows = 9;
  // Seconds after which no new round starts, per member: measured seconds or, where they are more
  // (caches are emptied between calls), those that pass. The least rows come first.
  double seconds_per_member = 0.75;
  int max_rounds = 200;
};

struct MemberRows {
  std::vector<double> seconds_per_call;  // one per row, in the order measured
  bool stable = false;                   // the interval is under the target
};

struct Rounds {
  std::vector<MemberRows> members;
  std::int64_t rounds = 0;
  // Set when a member failed: nothing after it ran, and the rows are no result.
  struct Failure {
    std::size_t member = 0;
    Fault fault;
  };
  std::optional<Failure> failure;
};

// The order of one round: 0 1 1 0 for two members, for more a random permutation drawn from
// (seed, round) and then its reverse.
std::vector<std::size_t> round_order(std::size_t members, std::uint64_t seed, std::int64_t round);

// Rounds that give every member at least rule.min_rows rows, and enough for an interval of the
// rule's confidence: [min, max] of n values covers their median with 1 - 2^(1 - n).
std::int64_t min_rounds(const StoppingRule& rule);

// `before_row` is told each member about to run, so that a fault that takes the process down can be
// attributed.
Rounds measure_rounds(std::span<const Member> members, const StoppingRule& rule, std::uint64_t seed,
                      const std::function<void(std::size_t)>& before_row);

}  // namespace moegauge
