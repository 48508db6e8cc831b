// Whether a change made cases slower, when what differs from process to process is larger than what
// is looked for. The process is the unit: one value, ln(median), for each.
//
// Screening compares one or a few processes with many of a baseline and lets everything through
// that may be slower by the shift looked for. Candidates are measured again, in fresh processes of
// both sides in turn, and only those measurements decide: what chance let through screening has no
// part in them, so that the false-alarm rate is that of the second stage alone, whatever the first
// one did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/statistics/moderated.h"

namespace moegauge {

// What is to be found, and how rarely it may be found where it is not. Ratios as logarithms.
struct Aim {
  double shift = 0.0295588022;        // ln 1.03
  double screening_power = 0.9875;    // chance that a case slower by `shift` becomes a candidate
  double confirmation_power = 0.985;  // chance that such a candidate is confirmed
  double false_alarms =
      0.003;  // chance that a run in which nothing changed has any change confirmed
  double least = 0.0099503309;  // ln 1.01: smaller changes are none, however sure
  // A confirmed change must also be one of ranks, which no outlier can fake.
  double rank_level = 0.02;
  double most_prior = 60;  // moderate(): bound of the prior's degrees of freedom
};

struct CaseSamples {
  std::span<const double> now = {}, baseline = {};
  // Of ln(median) between processes, from elsewhere: a calibration, history. 0 degrees of freedom:
  // nothing is known; infinite: taken as given.
  Variance known = {};
};

struct Screened {
  double value = 0;     // ln(now / baseline)
  double baseline = 0;  // the centre of the baseline
  double standard_error = 0, degrees_of_freedom = 0;
  double low = 0, high = 0;  // interval at the confidence asked for
  double between = 0;        // the standard deviation between processes that was used
  // Could be slower (faster) by the shift looked for.
  bool may_be_slower = false, may_be_faster = false;

  // One-sided; 1 where nothing is known.
  double p_slower() const;
  double p_faster() const;
};

struct Screening {
  std::vector<Screened> cases = {};  // in order
  // Of the spread between processes, as all cases together show it; none where none shows any.
  std::optional<Variance> prior = {};
};

// Where neither the sides nor `known` show any spread, the entry has 0
// degrees of freedom and decides nothing. Both sides of a case hold a value.
Screening screen(std::span<const CaseSamples> cases, const Aim& aim, double confidence);

enum class Direction : std::uint8_t { slower, faster, either };

struct Confirmation {
  double value = 0;  // ln(now / baseline)
  double standard_error = 0, degrees_of_freedom = 0;
  double low = 0, high = 0;  // at the confidence asked for
  double p = 1, adjusted_p = 1;
  std::optional<double> rank_p = {};  // looked at only where adjusted_p is small enough
  double smallest = 0;  // the least |value| that would have been a change, given this much noise
  Direction asked = Direction::either;
  std::optional<Direction> found = {};  // slower or faster; none: no change is shown
};

struct PairedCase {
  std::span<const double> pairs = {};  // ln(now / baseline) of each pair; at least two
  Direction asked = Direction::either;
};

// `between`: the prior of one process's spread, as screen() gives it; none: each case stands alone.
std::vector<Confirmation> confirm(std::span<const PairedCase> candidates,
                                  const std::optional<Variance>& between, const Aim& aim,
                                  double confidence);

// How many pairs each of `candidates` cases needs, so that a change by the shift is confirmed with
// the power aimed at: at least least_pairs. `between`: as for confirm(); of one without degrees of
// freedom nothing can be planned: 0.
std::size_t pairs_needed(const Variance& between, std::size_t candidates, const Aim& aim);
inline constexpr std::size_t least_pairs = 14;

// What the aims cost where processes differ as `between` says.
struct StagePlan {
  std::size_t screening_processes = 0;  // of the result
  std::size_t pairs = 0;                // of each candidate, where nothing changed
  double expected_candidates = 0;       // of `cases`, where nothing changed
};
// Of all numbers of screening processes up to 64 the one with the fewest measurements in all; none,
// 0 processes, where nothing can be planned.
StagePlan plan_stages(const Variance& between, std::size_t cases, std::size_t baseline_processes,
                      const Aim& aim);

}  // namespace moegauge
