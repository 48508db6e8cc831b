// Sessions of single ops: cases of one op and layer share its weights, where it has any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/measure/op_check.h"
#include "harness/measure/prepare.h"
#include "harness/measure/session.h"
#include "harness/workload/op_tensors.h"

namespace moegauge {

// What the members of a point share.
struct OpPoint {
  OpProblem problem = {};
  Cache cache = Cache::cold_weights;
  Launch launch = Launch::eager;
  std::vector<Tensor> check = {};               // at most 256 distinct tokens
  std::vector<std::vector<Tensor>> timed = {};  // one set of inputs per slot
  bool given = false;                           // some of both are of a file
  std::int64_t distinct_tokens = 0;             // in `check`
  std::unique_ptr<const OpTruth> truth = {};    // of `check`
};

// One backend's copy of the weights and the ceilings measured beside it.
struct ResidentOp {
  std::unique_ptr<LoadedOp> op;
  Device device;
  CeilingsMeter ceilings;
  WeightTurn turn;
};

// One member of a point that is still in the running.
class OpRival {
 public:
  OpRival(std::size_t index, PreparedOp prepared, const Op& op, ResidentOp& resident)
      : index_(index), prepared_(std::move(prepared)), op_(&op), resident_(&resident) {}

  std::size_t index() const { return index_; }
  Resolved resolved() const { return {prepared_.backend, &prepared_.config_record}; }

  std::optional<Fault> plan(const OpPoint& point);
  // nothing: right. Otherwise why there is no latency.
  std::optional<Unmeasured> check(const OpPoint& point);
  // What was checked; empty where the kernel gave none. Once.
  std::vector<Tensor> take_outputs() { return std::exchange(outputs_, {}); }
  std::optional<Fault> pilot(const OpPoint& point, double row_seconds);
  Member member(std::string name) { return timing_->member(std::move(name)); }
  // Timed outputs finite, one replay right again.
  std::optional<Unmeasured> check_again(const OpPoint& point);
  Measured measured(MemberRows rows, std::int64_t rounds);

 private:
  OpYardstick yardstick(const OpPoint& point) const;
  CheckResult check_result(const OpErrors& errors, const OpPoint& point) const;

  std::size_t index_ = 0;
  PreparedOp prepared_;
  const Op* op_;
  ResidentOp* resident_;
  std::unique_ptr<OpPlan> plan_;
  std::optional<TimedRun> timing_;
  Work work_;  // mean over the slots
  CheckResult check_;
  std::vector<Tensor> outputs_;
};

class OpSession final : public Session {
 public:
  OpSession(Setup setup, const Op& op);

 private:
  using Residence = std::variant<std::unique_ptr<ResidentOp>, Fault>;

  void measure_into(PointResult& result, std::span<const std::size_t> members) override;
  OpPoint draw_point(const CaseCoordinates& c, OpProblem problem);
  std::variant<OpRival, Finished> admit(std::size_t index, const OpPoint& point, bool& tainted);
  Residence& reside(const PreparedOp& prepared);
  void dump(OpRival& rival, const OpPoint& point);
  const std::vector<Tensor>& weights(const OpProblem& problem);
  std::int64_t weight_sets(const PreparedOp& prepared);

  const Op& op_;
  const OpTensors tensors_;
  std::optional<std::vector<Tensor>> weights_;
  std::map<const Backend*, Residence> residences_;
};

}  // namespace moegauge
