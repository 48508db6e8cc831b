// One member of a point that is still in the running: planned, checked, timed, recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/check.h"
#include "harness/measure/prepare.h"
#include "harness/measure/resident.h"
#include "harness/measure/roofline.h"
#include "harness/measure/session.h"
#include "harness/measure/timed_run.h"

namespace moegauge {

// What the members of a point share.
struct Point {
  std::int64_t tokens = 0;
  Cache cache = Cache::cold_weights;
  Launch launch = Launch::eager;
  CheckInputs check;
  std::vector<OwnedInputs> timed;  // one per slot, fully random rows
  std::string quantization_of;     // ErrorReport's
  bool stages = false;             // are to be measured too
};

class Rival {
 public:
  Rival(std::size_t index, PreparedCase prepared, ResidentLayer& resident);

  std::size_t index() const { return index_; }
  Resolved resolved() const { return {prepared_.backend, &prepared_.config_record}; }
  const KernelIdentity& identity() const { return plan_->identity(); }

  // Compiles and allocates; after this identity() is known.
  std::optional<Fault> plan(const Point& point);
  // nothing: right. Otherwise why there is no latency.
  std::optional<Unmeasured> check(const Point& point, const Truth& truth);
  // What check() compared with the truth; empty where there was a fault.
  std::vector<std::uint16_t> take_output() { return std::move(output_); }
  // Timed inputs into the slots, one unmeasured turn, and the number of calls that fill a row.
  std::optional<Fault> pilot(const Point& point, double row_seconds);
  Member member(std::string name) { return timing_->member(std::move(name)); }
  // Stages, where they are wanted; timed outputs finite, one replay right again.
  std::optional<Unmeasured> check_again(const Point& point, const Truth& truth);
  // The record of an ok case; measures ceilings again where the time is under the floor.
  Measured measured(MemberRows rows, std::int64_t rounds);

 private:
  CheckResult check_result(const CheckOutcome& outcome, const Point& point) const;
  Yardstick yardstick(const Point& point, const Truth& truth) const;

  std::size_t index_ = 0;
  PreparedCase prepared_;
  ResidentLayer* resident_ = nullptr;
  std::unique_ptr<Plan> plan_;
  std::optional<TimedRun> timing_;
  Work work_;  // mean over the slots
  std::map<std::string, double> stage_seconds_;
  CheckResult check_;
  std::vector<std::uint16_t> output_;
};

}  // namespace moegauge
