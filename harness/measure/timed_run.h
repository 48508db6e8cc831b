// The timing of one plan, whether of a whole layer or of a single op: how many calls make a row,
// and what rows become in a record.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/roofline.h"
#include "harness/measure/rounds.h"
#include "harness/result/record.h"
#include "kernels/backend.h"

namespace moegauge {

// Input slots over which the calls of a row rotate, so that a median does not rest on one drawn
// routing. `launch`: what every member serves. A graph holds 8 calls anyway (4 from 2048 tokens on,
// as published peers do), each with its own inputs. Eager calls are slow ones: up to 4 tokens 8,
// from 32 tokens on 1.
int slots_for(std::int64_t tokens, Cache cache, Launch launch);

// Calls of one row: at least `wanted`, whole turns of the slots, and no weight set read again
// before all others: either at most `weight_sets` calls, or whole turns of these too.
std::int64_t calls_per_row(std::int64_t wanted, std::int64_t slots, std::int64_t weight_sets);

// Rates that were measured once and may be again: the higher of each is kept, since a neighbour may
// have held one down.
class CeilingsMeter {
 public:
  using Measure = std::function<Expected<Ceilings, Fault>()>;
  explicit CeilingsMeter(Measure measure) : measure_(std::move(measure)) {}
  std::optional<Fault> measure();
  // Before the first latency: cases that are wrong need no ceilings.
  std::optional<Fault> measure_once() { return measured_ ? std::nullopt : measure(); }
  const Ceilings& best() const { return best_; }

 private:
  Measure measure_;
  bool measured_ = false;
  Ceilings best_;
};

// Where rows that are shorter than a turn of the weight sets go on. All rivals that read the same
// copies share one: a rival that began anew would find warm what the one before it read.
class WeightTurn {
 public:
  // The first set of the next `calls`, of `sets`.
  std::int64_t take(std::int64_t calls, std::int64_t sets) {
    const std::int64_t first = next_ % sets;
    next_ = (first + calls) % sets;
    return first;
  }

 private:
  std::int64_t next_ = 0;
};

struct TimedSetting {
  Cache cache = Cache::cold_weights;
  Launch launch = Launch::eager;  // as the backend serves it
  std::int64_t weight_sets = 1;   // loaded
  std::int64_t sets_for_cold = 1;
  std::int64_t last_level_cache_bytes = 0;
};

class TimedRun {
 public:
  // All references outlive it.
  TimedRun(Runnable& plan, const TimedSetting& setting, CeilingsMeter& ceilings, WeightTurn& turn);

  // As the timing will run it.
  const RunRequest& request() const { return request_; }
  // Unmeasured calls over inputs that are set, and the number of calls that fill a row: whole turns
  // of the weight sets where those are short, else so many that rows go on where the last one
  // stopped.
  std::optional<Fault> pilot(double row_seconds);
  Member member(std::string name);
  // The record of an ok case, all but what its check found; measures ceilings again where the time
  // is under the floor.
  Measured measured(MemberRows rows, std::int64_t rounds, const Work& work);

 private:
  std::optional<Fault> choose_calls(double row_seconds);
  void rest(double seconds);

  Runnable* plan_;
  TimedSetting setting_;
  CeilingsMeter* ceilings_;
  WeightTurn* turn_;
  bool rows_go_on_ = false;          // each row starts on the set after the last one's
  RunRequest request_;               // calls: of one row once pilot() ran
  std::vector<DeviceState> states_;  // after each timed row, where the device tells
  double rested_seconds_ = 0;
};

}  // namespace moegauge
