#include "harness/measure/op_session.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "harness/measure/check.h"
#include "harness/measure/resident.h"
#include "harness/workload/op_dump.h"
#include "reference/base/thread_pool.h"

namespace moegauge {
namespace {

// What a call must move: of the operands, as much as a last-level cache holds may still be there
// from the call before, unless caches are emptied.
Work work_of(const OpWork& work, Cache cache, std::int64_t cache_bytes) {
  const double cached = std::min(work.operand_bytes, static_cast<double>(cache_bytes));
  return {.weight_bytes = work.weight_bytes,
          .activation_bytes = work.operand_bytes,
          .flops = work.flops,
          .cached_bytes = cache == Cache::cold ? 0 : cached};
}

}  // namespace

// ---- one rival ----

std::optional<Fault> OpRival::plan(const OpPoint& point) {
  auto plan =
      resident_->op->plan(point.problem, prepared_.config, static_cast<int>(point.timed.size()));
  if (!plan) return std::move(plan).error();
  plan_ = std::move(plan).value();
  prepared_.config_record.hash = plan_->identity().hash;
  const std::int64_t cache_bytes = resident_->device.last_level_cache_bytes;
  OpWork sum;
  for (const auto& inputs : point.timed) {
    const OpWork work = op_->work(point.problem, inputs);
    sum.weight_bytes += work.weight_bytes;
    sum.operand_bytes += work.operand_bytes;
    sum.flops += work.flops;
  }
  const auto slots = static_cast<double>(point.timed.size());
  work_ = work_of(OpWork{sum.weight_bytes / slots, sum.operand_bytes / slots, sum.flops / slots},
                  point.cache, cache_bytes);
  const TimedSetting setting = {
      .cache = point.cache,
      .launch = prepared_.backend->serves_graphs() ? point.launch : Launch::eager,
      .weight_sets = resident_->op->weight_sets(),
      .sets_for_cold = point.cache == Cache::cold_weights
                           ? weight_sets_for_cold(work_.weight_bytes, cache_bytes)
                           : 1,
      .last_level_cache_bytes = cache_bytes};
  timing_.emplace(*plan_, setting, resident_->ceilings, resident_->turn);
  return std::nullopt;
}

OpYardstick OpRival::yardstick(const OpPoint& point) const {
  return {*op_, point.problem, point.check, *point.truth, point.timed.front()};
}

CheckResult OpRival::check_result(const OpErrors& errors, const OpPoint& point) const {
  return {
      .layer = shape_of(point.problem.layer),
      .executed_scheme = plan_->identity().executed_scheme,
      .numerics = plan_->identity().numerics,
      .error = {errors.implementation, errors.quantization, errors.total, errors.quantization_of},
      .checked = {.tokens = point.distinct_tokens, .rows = point.problem.tokens}};
}

std::optional<Unmeasured> OpRival::check(const OpPoint& point) {
  auto answer =
      check_op(*plan_, yardstick(point), timing_->request(), resident_->op->weight_sets());
  if (!answer) return from_fault(answer.error());
  outputs_ = std::move(answer->outputs);
  check_ = check_result(answer->errors, point);
  if (answer->errors.wrong) return inaccurate(*answer->errors.wrong, check_);
  return std::nullopt;
}

std::optional<Fault> OpRival::pilot(const OpPoint& point, double row_seconds) {
  for (std::size_t slot = 0; slot < point.timed.size(); ++slot) {
    if (auto fault = plan_->set_inputs(static_cast<int>(slot), point.timed[slot])) return fault;
  }
  return timing_->pilot(row_seconds);
}

std::optional<Unmeasured> OpRival::check_again(const OpPoint& point) {
  for (std::size_t slot = 0; slot < point.timed.size(); ++slot) {
    std::vector<Tensor> outputs = make_tensors(point.problem.outputs);
    if (auto fault = plan_->fetch(static_cast<int>(slot), outputs)) return from_fault(*fault);
    // Given inputs may hold what is not finite; a replay judges those below.
    if (point.given) continue;
    if (auto bad = op_->not_finite(point.problem, point.timed[slot], outputs)) {
      return inaccurate(
          "timed output " + *bad + " of slot " + std::to_string(slot) + " is not finite", check_);
    }
  }
  const auto errors = check_op_replay(*plan_, yardstick(point), timing_->request());
  if (!errors) return from_fault(errors.error());
  if (errors->wrong) {
    return inaccurate("wrong after timing though right before: " + *errors->wrong,
                      check_result(*errors, point));
  }
  return std::nullopt;
}

Measured OpRival::measured(MemberRows rows, std::int64_t rounds) {
  Measured result = timing_->measured(std::move(rows), rounds, work_);
  result.check = check_;
  return result;
}

// ---- the session ----

OpSession::OpSession(Setup setup, const Op& op)
    : Session(std::move(setup)),
      op_(op),
      tensors_(at(0), {.seed = setup_.settings.seed, .unit_spread = setup_.settings.unit_spread}) {}

void OpSession::measure_into(PointResult& result, std::span<const std::size_t> members) {
  enter(members.front(), Phase::truth);
  const CaseCoordinates& c = at(members.front());
  const auto none_measured = [&](const Unmeasured& why) {
    for (const std::size_t index : members) result.records.push_back(finish(index, why));
  };
  auto problem = op_problem_of(c, setup_.root);
  if (!problem) return none_measured(problem.error());
  if (tensors_.generator().distribution == Distribution::exact && !op_.has_exact_inputs()) {
    return none_measured(
        unmeasured(Status::unsupported, "no inputs of " + c.op + " make every kernel exact"));
  }
  const OpPoint point = draw_point(c, std::move(*problem));
  std::vector<OpRival> rivals;
  for (const std::size_t index : members) {
    auto admitted = admit(index, point, result.tainted);
    if (auto* finished = std::get_if<Finished>(&admitted)) {
      result.records.push_back(std::move(*finished));
    } else {
      rivals.push_back(std::move(std::get<OpRival>(admitted)));
    }
    if (result.tainted) return;
  }
  if (rivals.empty()) return;
  time_rivals(
      rivals, [&](OpRival& rival) { return rival.pilot(point, setup_.settings.row_seconds); },
      [&](OpRival& rival) { return rival.check_again(point); }, result);
}

OpPoint OpSession::draw_point(const CaseCoordinates& c, OpProblem problem) {
  OpPoint point{.problem = std::move(problem),
                .cache = cache_from(c.cache),
                .launch = c.launch == "graph" ? Launch::graph : Launch::eager};
  const GivenRows given = tensors_.given_inputs(point.problem);
  OpDraw check = tensors_.draw(c.routing, point.problem, kCheckStream);
  // Rows that somebody gave are all checked, however many: it may be any one that matters.
  const bool pooled = given == GivenRows::none && op_.repeats_tokens();
  if (pooled) check.pool = kPoolRows;
  point.distinct_tokens = pooled ? std::min(c.tokens, kPoolRows) : c.tokens;
  point.check = tensors_.inputs(op_, point.problem, check);
  point.truth = op_.truth(point.problem, weights(point.problem), point.check,
                          tensors_.gives_any(point.problem) ? nullptr : &check,
                          ThreadPool::usable_processors());
  point.given = given != GivenRows::none;
  if (given == GivenRows::all) {  // slots would all hold the same
    point.timed = {point.check};
    return point;
  }
  const auto slots = static_cast<std::uint64_t>(slots_for(c.tokens, point.cache, Launch::eager));
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    point.timed.push_back(tensors_.inputs(
        op_, point.problem, tensors_.draw(c.routing, point.problem, kFirstTimedStream + slot)));
  }
  return point;
}

std::variant<OpRival, OpSession::Finished> OpSession::admit(std::size_t index, const OpPoint& point,
                                                            bool& tainted) {
  enter(index, Phase::prepare);
  auto prepared = prepare_op(at(index), point.problem, setup_.backends);
  if (!prepared) return finish_unprepared(index, std::move(prepared).error());
  enter(index, Phase::load);
  Residence& residence = reside(*prepared);
  if (const Fault* fault = std::get_if<Fault>(&residence)) {
    return finish(index, from_fault(*fault), {prepared->backend, &prepared->config_record});
  }
  OpRival rival(index, std::move(*prepared), op_,
                *std::get<std::unique_ptr<ResidentOp>>(residence));
  enter(index, Phase::plan);
  if (const auto fault = rival.plan(point)) {
    return finish(index, from_fault(*fault), rival.resolved());
  }
  enter(index, Phase::check);
  auto outcome = rival.check(point);
  dump(rival, point);
  if (outcome) {
    tainted = taints(*outcome);
    return finish(index, std::move(*outcome), rival.resolved());
  }
  return rival;
}

OpSession::Residence& OpSession::reside(const PreparedOp& prepared) {
  const auto known = residences_.find(prepared.backend);
  if (known != residences_.end()) return known->second;
  const auto load = [&]() -> Residence {
    const Backend& backend = *prepared.backend;
    for (std::int64_t sets = weight_sets(prepared);;) {
      auto op =
          backend.load_op(prepared.problem, weights(prepared.problem), static_cast<int>(sets));
      if (op) {
        auto resident = std::make_unique<ResidentOp>(
            ResidentOp{std::move(op).value(),
                       backend.device(),
                       CeilingsMeter([&backend, problem = prepared.problem] {
                         return backend.measure_op_ceilings(problem);
                       }),
                       {}});
        return resident;
      }
      Fault fault = std::move(op).error();
      if (fault.kind != FaultKind::out_of_memory || sets == 1) return fault;
      sets = choose_weight_sets(sets / 2, 1, std::numeric_limits<double>::infinity());
    }
  };
  return residences_.emplace(prepared.backend, load()).first->second;
}

// Drawn once: all cases of the session have the same.
const std::vector<Tensor>& OpSession::weights(const OpProblem& problem) {
  if (!weights_) {
    weights_ = tensors_.weights(op_, problem, tensors_.draw(at(0).routing, problem, kCheckStream));
  }
  return *weights_;
}

void OpSession::dump(OpRival& rival, const OpPoint& point) {
  const std::vector<Tensor> outputs = rival.take_outputs();
  const auto& dumps = setup_.settings.dumps;
  if (dumps.empty() || outputs.empty()) return;
  enter(rival.index(), Phase::dump);
  write_op_dump(dumps[rival.index()], {.coordinates = at(rival.index()),
                                       .problem = point.problem,
                                       .generator = tensors_.generator(),
                                       .inputs = point.check,
                                       .weights = weights(point.problem),
                                       .outputs = outputs,
                                       .answers = point.truth->answers()});
}

// The most that any case needs: of each routing, the one with the fewest tokens touches least.
std::int64_t OpSession::weight_sets(const PreparedOp& prepared) {
  if (prepared.problem.weights.empty()) return 1;
  std::map<std::string, CaseCoordinates> least;
  for (const CaseCoordinates& c : setup_.cases) {
    if (cache_from(c.cache) != Cache::cold_weights || c.tokens == 0) continue;
    const auto [entry, added] = least.emplace(c.routing, c);
    if (!added && c.tokens < entry->second.tokens) entry->second = c;
  }
  const Device device = prepared.backend->device();
  std::int64_t sets = 1;
  for (const auto& [routing, c] : least) {
    const auto problem = op_problem_of(c, setup_.root);
    if (!problem) continue;
    const OpWork work = op_.work(
        *problem,
        tensors_.inputs(op_, *problem, tensors_.draw(c.routing, *problem, kFirstTimedStream)));
    sets = std::max(sets, weight_sets_for_cold(work.weight_bytes, device.last_level_cache_bytes));
  }
  const auto& specs = prepared.problem.weights;
  const auto bytes = static_cast<double>(
      std::accumulate(specs.begin(), specs.end(), std::int64_t{0},
                      [](std::int64_t sum, const TensorSpec& spec) { return sum + spec.bytes(); }));
  return weight_sets_to_load(setup_.settings, device, sets, bytes);
}

}  // namespace moegauge
