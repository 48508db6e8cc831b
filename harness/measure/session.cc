#include "harness/measure/session.h"

#include <algorithm>
#include <exception>
#include <new>
#include <set>
#include <string>

#include "harness/workload/dump.h"
#include "reference/base/input_error.h"
#include "reference/base/thread_pool.h"

namespace moegauge {
namespace {

constexpr std::uint64_t kCheckStream = 0, kFirstTimedStream = 1;

Cache parse_cache(const std::string& text) {
  return text == "hot" ? Cache::hot : text == "cold" ? Cache::cold : Cache::cold_weights;
}

Unmeasured unmeasured(Status status, std::string reason) {
  return {.status = status, .reason = std::move(reason), .check = std::nullopt};
}

// A wrong number is a finding about a kernel, everything else an accident after a launch.
bool taints(const Unmeasured& outcome) { return outcome.status != Status::inaccurate; }

}  // namespace

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
    case Phase::time:
      return "timing";
  }
  return "?";
}

LayerSession::LayerSession(std::vector<CaseCoordinates> cases, std::filesystem::path root,
                           std::span<const Backend* const> backends, MeasureSettings settings,
                           InFlight in_flight)
    : cases_(std::move(cases)),
      root_(std::move(root)),
      backends_(backends),
      settings_(settings),
      in_flight_(std::move(in_flight)),
      problem_(problem_of(cases_.front(), root_)),
      workload_(make_workload(cases_.front(), problem_, root_,
                              {.seed = settings_.seed, .unit_spread = settings_.unit_spread})),
      truths_(problem_, workload_->experts()) {}

LayerSession::PointResult LayerSession::measure(std::span<const std::size_t> members) {
  PointResult result;
  const auto fail = [&](Status status, std::string reason) {
    if (phase_ == Phase::truth) {
      status = Status::infrastructure;
      reason = "the harness's own fault while " + std::string(to_string(phase_)) + ": " + reason;
    }
    result.records.push_back(finish(current_, unmeasured(status, std::move(reason)), nullptr));
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

void LayerSession::measure_into(PointResult& result, std::span<const std::size_t> members) {
  enter(members.front(), Phase::truth);
  const bool graphs = std::ranges::all_of(
      members, [this](std::size_t index) { return serves_graphs(cases_[index]); });
  const Point point = draw_point(cases_[members.front()], graphs);
  std::vector<Rival> rivals;
  for (const std::size_t index : members) {
    auto admitted = admit(index, point, result.tainted);
    if (auto* finished = std::get_if<Finished>(&admitted)) {
      result.records.push_back(std::move(*finished));
    } else {
      rivals.push_back(std::move(std::get<Rival>(admitted)));
    }
    if (result.tainted) return;
  }
  if (!rivals.empty()) time_rivals(rivals, point, result);
}

// Of the backend that the case will run on.
bool LayerSession::serves_graphs(const CaseCoordinates& c) const {
  Problem problem = problem_;
  problem.tokens = c.tokens;
  const auto backend = std::ranges::find_if(backends_, [&](const Backend* candidate) {
    return c.backend == "auto" ? !candidate->refuses(problem) : candidate->name() == c.backend;
  });
  return backend != backends_.end() && (*backend)->serves_graphs();
}

Point LayerSession::draw_point(const CaseCoordinates& c, bool graphs) const {
  Point point{.tokens = c.tokens,
              .cache = parse_cache(c.cache),
              .launch = c.launch == "graph" ? Launch::graph : Launch::eager,
              .check = {},
              .timed = {},
              .quantization_of = workload_->quantization_of()};
  // Rows that somebody gave are all checked, however many: it may be any one that matters.
  const bool given = workload_->given_rows() != GivenRows::none;
  const std::int64_t pool_rows = given ? c.tokens : std::min(c.tokens, kPoolRows);
  point.check = make_check_inputs(workload_->draw(c.routing, pool_rows, kCheckStream),
                                  problem_.layer, c.tokens, settings_.seed);
  // Slots of given rows would all hold the same.
  const int wanted = slots_for(c.tokens, point.cache, graphs ? point.launch : Launch::eager);
  const bool same = workload_->given_rows() == GivenRows::all;
  const auto slots = static_cast<std::size_t>(same ? 1 : wanted);
  // Drawing many tokens takes longer than timing them.
  point.timed.resize(slots);
  ThreadPool pool(static_cast<int>(
      std::min<std::size_t>(slots, static_cast<std::size_t>(ThreadPool::usable_processors()))));
  pool.parallel_for(static_cast<std::int64_t>(slots), [&](std::int64_t slot) {
    point.timed[static_cast<std::size_t>(slot)] =
        workload_->draw(c.routing, c.tokens, kFirstTimedStream + static_cast<std::uint64_t>(slot));
  });
  return point;
}

std::variant<Rival, LayerSession::Finished> LayerSession::admit(std::size_t index,
                                                                const Point& point, bool& tainted) {
  enter(index, Phase::prepare);
  auto prepared = prepare_case(cases_[index], problem_, backends_, root_);
  if (!prepared) return finish_unprepared(index, std::move(prepared).error());
  enter(index, Phase::load);
  Residence& residence = reside(*prepared);
  if (const Fault* fault = std::get_if<Fault>(&residence)) {
    return finish(index, from_fault(*fault), &*prepared);
  }
  Rival rival(index, std::move(*prepared), *std::get<std::unique_ptr<ResidentLayer>>(residence));
  enter(index, Phase::plan);
  if (const auto fault = rival.plan(point)) {
    return finish(index, from_fault(*fault), &rival.prepared());
  }
  enter(index, Phase::truth);
  const Truth& truth = truth_for(rival, point);
  enter(index, Phase::check);
  auto outcome = rival.check(point, truth);
  dump(rival, point, truth);
  if (outcome) {
    tainted = taints(*outcome);
    return finish(index, std::move(*outcome), &rival.prepared());
  }
  return rival;
}

void LayerSession::dump(Rival& rival, const Point& point, const Truth& truth) const {
  const std::vector<std::uint16_t> output = rival.take_output();
  if (settings_.dumps.empty() || output.empty()) return;
  write_dump(settings_.dumps[rival.index()], {.coordinates = cases_[rival.index()],
                                              .problem = problem_,
                                              .workload = *workload_,
                                              .inputs = point.check.repeated.inputs,
                                              .index = point.check.repeated.index,
                                              .truth = truth,
                                              .output = output});
}

void LayerSession::time_rivals(std::vector<Rival>& rivals, const Point& point,
                               PointResult& result) {
  const auto failed = [&](const Rival& rival, Unmeasured outcome) {
    result.tainted = taints(outcome);
    result.records.push_back(finish(rival.index(), std::move(outcome), &rival.prepared()));
  };
  std::vector<Member> members;
  for (Rival& rival : rivals) {
    enter(rival.index(), Phase::time);
    if (const auto fault = rival.pilot(point, settings_.row_seconds)) {
      return failed(rival, from_fault(*fault));
    }
    members.push_back(rival.member(case_id(cases_[rival.index()])));
  }
  Rounds rounds = measure_rounds(members, settings_.stopping, settings_.seed,
                                 [&](std::size_t row) { enter(rivals[row].index(), Phase::time); });
  if (rounds.failure) {
    return failed(rivals[rounds.failure->member], from_fault(rounds.failure->fault));
  }
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    Rival& rival = rivals[i];
    enter(rival.index(), Phase::truth);
    const Truth& truth = truth_for(rival, point);
    enter(rival.index(), Phase::check);
    if (auto outcome = rival.check_again(point, truth)) {
      failed(rival, std::move(*outcome));
      if (result.tainted) return;
      continue;
    }
    result.records.push_back(finish(rival.index(),
                                    rival.measured(std::move(rounds.members[i]), rounds.rounds),
                                    &rival.prepared()));
  }
}

LayerSession::Residence& LayerSession::reside(const PreparedCase& prepared) {
  const auto known = residences_.find(prepared.backend);
  if (known != residences_.end()) return known->second;
  const double bytes_per_set = expert_bytes(problem_.layer, *problem_.scheme) *
                               static_cast<double>(problem_.layer.local_experts());
  const auto device_bytes = static_cast<double>(prepared.backend->device().memory_bytes);
  const double memory = std::min(device_bytes > 0 ? device_bytes : available_memory_bytes(),
                                 available_memory_bytes());
  const std::int64_t sets = choose_weight_sets(
      std::min(weight_sets_wanted(prepared), settings_.max_weight_sets), bytes_per_set, memory);
  auto loaded = ResidentLayer::load(*prepared.backend, problem_, workload_->experts(), sets);
  Residence residence =
      loaded ? Residence(std::move(loaded).value()) : Residence(std::move(loaded).error());
  return residences_.emplace(prepared.backend, std::move(residence)).first->second;
}

// The most that any case needs: of each routing, the one with the fewest tokens touches least.
std::int64_t LayerSession::weight_sets_wanted(const PreparedCase& prepared) const {
  std::map<std::string, std::int64_t> least_tokens;
  for (const CaseCoordinates& c : cases_) {
    if (parse_cache(c.cache) != Cache::cold_weights || c.tokens == 0) continue;
    const auto [entry, added] = least_tokens.emplace(c.routing, c.tokens);
    if (!added) entry->second = std::min(entry->second, c.tokens);
  }
  const std::int64_t cache_bytes = prepared.backend->device().last_level_cache_bytes;
  std::int64_t sets = 1;
  for (const auto& [routing, tokens] : least_tokens) {
    const OwnedInputs inputs = workload_->draw(routing, tokens, kFirstTimedStream);
    const Work work = work_of(problem_.layer, *problem_.scheme, Numerics{}, inputs.view());
    sets = std::max(sets, weight_sets_for_cold(work.weight_bytes, cache_bytes));
  }
  return sets;
}

const Truth& LayerSession::truth_for(const Rival& rival, const Point& point) {
  return truths_.truth(cases_[rival.index()].routing, point.check.pool, rival.identity().numerics);
}

void LayerSession::enter(std::size_t index, Phase phase) {
  current_ = index;
  phase_ = phase;
  in_flight_(index, phase);
}

LayerSession::Finished LayerSession::finish_unprepared(std::size_t index,
                                                       Unprepared unprepared) const {
  Finished finished = finish(index, std::move(unprepared.outcome), nullptr);
  if (unprepared.backend != nullptr) {
    finished.record.backend = unprepared.backend->name();
    finished.record.device = device_key(unprepared.backend->device());
  }
  return finished;
}

LayerSession::Finished LayerSession::finish(std::size_t index,
                                            std::variant<Measured, Unmeasured> outcome,
                                            const PreparedCase* prepared) const {
  CaseRecord record;
  record.coordinates = cases_[index];
  record.backend = record.coordinates.backend;
  record.seed = settings_.seed;
  record.outcome = std::move(outcome);
  if (prepared != nullptr) {
    record.backend = prepared->backend->name();
    record.config = prepared->config_record;
    record.device = device_key(prepared->backend->device());
  } else {
    record.config.source = config_source(record.coordinates.config);
  }
  return {index, std::move(record), phase_ >= Phase::check};
}

}  // namespace moegauge
