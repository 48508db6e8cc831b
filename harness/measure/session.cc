#include "harness/measure/session.h"

#include <algorithm>
#include <exception>
#include <new>

#include "harness/measure/layer_session.h"
#include "harness/measure/op_session.h"
#include "harness/measure/prepare.h"
#include "harness/measure/resident.h"
#include "harness/workload/problem.h"
#include "reference/inputs/exact.h"
#include "reference/ops/op.h"

namespace moegauge {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::prepare:
      return "preparing";
    case Phase::load:
      return "loading weights";
    case Phase::plan:
      return "compiling";
    case Phase::truth:
      return "computing the truth";
    case Phase::check:
      return "checking";
    case Phase::dump:
      return "writing the dump";
    case Phase::time:
      return "timing";
  }
  return "?";
}

Cache cache_from(const std::string& coordinate) {
  return coordinate == "hot"    ? Cache::hot
         : coordinate == "cold" ? Cache::cold
                                : Cache::cold_weights;
}

std::int64_t weight_sets_to_load(const MeasureSettings& settings, const Device& device,
                                 std::int64_t wanted, double bytes_per_set) {
  double memory = available_memory_bytes();
  if (device.memory_bytes > 0) memory = std::min(memory, static_cast<double>(device.memory_bytes));
  // choose_weight_sets fills half of what it is given.
  memory = std::min(memory, 2 * static_cast<double>(settings.max_weight_bytes));
  return choose_weight_sets(std::min(wanted, settings.max_weight_sets), bytes_per_set, memory);
}

Unmeasured unmeasured(Status status, std::string reason) {
  return {.status = status, .reason = std::move(reason), .check = std::nullopt};
}

Unmeasured inaccurate(std::string reason, CheckResult check) {
  return {.status = Status::inaccurate, .reason = std::move(reason), .check = std::move(check)};
}

Unmeasured from_fault(const Fault& fault) {
  const Status status = fault.kind == FaultKind::out_of_memory    ? Status::out_of_memory
                        : fault.kind == FaultKind::infrastructure ? Status::infrastructure
                                                                  : Status::error;
  return unmeasured(status, fault.sentence);
}

bool taints(const Unmeasured& outcome) { return outcome.status != Status::inaccurate; }

void Session::compile_ahead(std::span<const std::size_t> members) {
  enter(members.front(), Phase::plan);
  compile_cases(members);
}

Session::PointResult Session::measure(std::span<const std::size_t> members,
                                      const PointSettings& settings) {
  point_settings_ = settings;
  PointResult result;
  const auto fail = [&](Status status, std::string reason) {
    if (is_ours(phase_)) {
      status = Status::infrastructure;
      reason = "the harness's own fault while " + std::string(to_string(phase_)) + ": " + reason;
    }
    result.records.push_back(finish(current_, unmeasured(status, std::move(reason))));
    result.tainted = true;
  };
  current_ = members.front();
  try {
    measure_into(result, members);
  } catch (const std::bad_alloc&) {
    fail(Status::out_of_memory, "an allocation on the host failed");
  } catch (const std::exception& error) {
    fail(Status::error, error.what());
  }
  return result;
}

void Session::enter(std::size_t index, Phase phase) {
  current_ = index;
  phase_ = phase;
  setup_.in_flight(index, phase);
}

Session::Finished Session::finish_unprepared(std::size_t index, Unprepared unprepared) const {
  Finished finished = finish(index, std::move(unprepared.outcome));
  if (unprepared.backend != nullptr) {
    finished.record.backend = unprepared.backend->name();
    finished.record.device = device_key(unprepared.backend->device());
  }
  return finished;
}

Session::Finished Session::finish(std::size_t index, std::variant<Measured, Unmeasured> outcome,
                                  const Resolved& resolved) const {
  CaseRecord record;
  record.coordinates = at(index);
  record.backend = record.coordinates.backend;
  record.seed = setup_.settings.seed;
  record.outcome = std::move(outcome);
  if (resolved.backend != nullptr) {
    record.backend = resolved.backend->name();
    record.config = *resolved.config;
    record.device = device_key(resolved.backend->device());
  } else {
    record.config.source = config_source(record.coordinates.config);
  }
  return {index, std::move(record), phase_ >= Phase::check};
}

namespace {

// Of whole layers for which there are no inputs of the kind that the cases ask for.
class SessionWithoutInputs final : public Session {
 public:
  SessionWithoutInputs(Setup setup, std::string why)
      : Session(std::move(setup)), why_(std::move(why)) {}

 private:
  void measure_into(PointResult& result, std::span<const std::size_t> members) override {
    for (const std::size_t index : members) {
      enter(index, Phase::prepare);
      result.records.push_back(finish(index, unmeasured(Status::unsupported, why_)));
    }
  }

  const std::string why_;
};

}  // namespace

std::unique_ptr<Session> make_session(Session::Setup setup) {
  const CaseCoordinates& first = setup.cases.front();
  if (const Op* op = find_op(first.op)) {
    return std::make_unique<OpSession>(std::move(setup), *op);
  }
  if (distribution_from(first.inputs) == Distribution::exact) {
    const Problem problem = problem_of(first, setup.root);
    if (auto why = no_exact_inputs(problem.layer, problem.scheme->traits())) {
      return std::make_unique<SessionWithoutInputs>(std::move(setup), std::move(*why));
    }
  }
  return std::make_unique<LayerSession>(std::move(setup));
}

}  // namespace moegauge
