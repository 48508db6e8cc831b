#include "harness/measure/layer_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "harness/workload/dump.h"
#include "harness/workload/problem.h"
#include "reference/base/thread_pool.h"

namespace moegauge {

LayerSession::LayerSession(Setup setup)
    : Session(std::move(setup)),
      problem_(problem_of(at(0), setup_.root)),
      workload_(make_workload(
          at(0), problem_, setup_.root,
          {.seed = setup_.settings.seed, .unit_spread = setup_.settings.unit_spread})),
      truths_(problem_, workload_->experts()) {}

void LayerSession::measure_into(PointResult& result, std::span<const std::size_t> members) {
  enter(members.front(), Phase::truth);
  const bool graphs =
      std::ranges::all_of(members, [this](std::size_t index) { return serves_graphs(at(index)); });
  const Point& point = point_of(at(members.front()), graphs);
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
  if (rivals.empty()) return;
  time_rivals(
      rivals, [&](Rival& rival) { return rival.pilot(point, setup_.settings.row_seconds); },
      [&](Rival& rival) {
        enter(rival.index(), Phase::truth);
        const Truth& truth = truth_for(rival, point);
        enter(rival.index(), Phase::check);
        return rival.check_again(point, truth);
      },
      result);
}

// Of the backend that the case will run on.
bool LayerSession::serves_graphs(const CaseCoordinates& c) const {
  Problem problem = problem_;
  problem.tokens = c.tokens;
  const auto backend = std::ranges::find_if(setup_.backends, [&](const Backend* candidate) {
    return c.backend == "auto" ? !candidate->refuses(problem) : candidate->name() == c.backend;
  });
  return backend != setup_.backends.end() && (*backend)->serves_graphs();
}

void LayerSession::compile_cases(std::span<const std::size_t> members) {
  std::vector<PreparedCase> prepared;
  for (const std::size_t index : members) {
    auto member = prepare_case(at(index), problem_, setup_.backends, setup_.root);
    if (member) prepared.push_back(std::move(member).value());
  }
  ThreadPool pool(ThreadPool::usable_processors());
  pool.parallel_for(static_cast<std::int64_t>(prepared.size()), [&](std::int64_t i) {
    const PreparedCase& member = prepared[static_cast<std::size_t>(i)];
    member.backend->compile_ahead(member.problem, member.config);
  });
}

const Point& LayerSession::point_of(const CaseCoordinates& c, bool graphs) {
  const std::string wanted =
      point_id(c) + (graphs ? " graphs" : "") + " draw " + std::to_string(point_settings_.draw);
  if (drawn_ && drawn_for_ == wanted) return *drawn_;
  drawn_.reset();  // before the next one takes its memory
  drawn_ = draw_point(c, graphs);
  drawn_for_ = wanted;
  return *drawn_;
}

Point LayerSession::draw_point(const CaseCoordinates& c, bool graphs) const {
  Point point{.tokens = c.tokens,
              .cache = cache_from(c.cache),
              .launch = c.launch == "graph" ? Launch::graph : Launch::eager,
              .check = {},
              .timed = {},
              .quantization_of = workload_->quantization_of(),
              .stages = setup_.settings.stages};
  // Rows that somebody gave are all checked, however many: it may be any one that matters.
  const bool given = workload_->given_rows() != GivenRows::none;
  const std::int64_t pool_rows = given ? c.tokens : std::min(c.tokens, kPoolRows);
  point.check = make_check_inputs(workload_->draw(c.routing, pool_rows, kCheckStream),
                                  problem_.layer, c.tokens, setup_.settings.seed);
  // Slots of given rows would all hold the same.
  const int wanted = slots_for(c.tokens, point.cache, graphs ? point.launch : Launch::eager);
  const bool same = workload_->given_rows() == GivenRows::all;
  const auto slots = static_cast<std::size_t>(same ? 1 : wanted);
  const std::uint64_t first = kFirstTimedStream + point_settings_.draw * kStreamsPerDraw;
  // Drawing many tokens takes longer than timing them.
  point.timed.resize(slots);
  ThreadPool pool(static_cast<int>(
      std::min<std::size_t>(slots, static_cast<std::size_t>(ThreadPool::usable_processors()))));
  pool.parallel_for(static_cast<std::int64_t>(slots), [&](std::int64_t slot) {
    point.timed[static_cast<std::size_t>(slot)] =
        workload_->draw(c.routing, c.tokens, first + static_cast<std::uint64_t>(slot));
  });
  return point;
}

std::variant<Rival, LayerSession::Finished> LayerSession::admit(std::size_t index,
                                                                const Point& point, bool& tainted) {
  enter(index, Phase::prepare);
  auto prepared = prepare_case(at(index), problem_, setup_.backends, setup_.root);
  if (!prepared) return finish_unprepared(index, std::move(prepared).error());
  enter(index, Phase::load);
  Residence& residence = reside(*prepared);
  if (const Fault* fault = std::get_if<Fault>(&residence)) {
    return finish(index, from_fault(*fault), Resolved{prepared->backend, &prepared->config_record});
  }
  Rival rival(index, std::move(*prepared), *std::get<std::unique_ptr<ResidentLayer>>(residence));
  enter(index, Phase::plan);
  if (const auto fault = rival.plan(point)) {
    return finish(index, from_fault(*fault), rival.resolved());
  }
  enter(index, Phase::truth);
  const Truth& truth = truth_for(rival, point);
  enter(index, Phase::check);
  auto outcome = rival.check(point, truth);
  dump(rival, point, truth);
  if (outcome) {
    tainted = taints(*outcome);
    return finish(index, std::move(*outcome), rival.resolved());
  }
  return rival;
}

void LayerSession::dump(Rival& rival, const Point& point, const Truth& truth) {
  const std::vector<std::uint16_t> output = rival.take_output();
  const auto& dumps = setup_.settings.dumps;
  if (dumps.empty() || output.empty()) return;
  enter(rival.index(), Phase::dump);
  write_dump(dumps[rival.index()], {.coordinates = at(rival.index()),
                                    .problem = problem_,
                                    .workload = *workload_,
                                    .inputs = point.check.repeated.inputs,
                                    .index = point.check.repeated.index,
                                    .truth = truth,
                                    .output = output});
}

LayerSession::Residence& LayerSession::reside(const PreparedCase& prepared) {
  const auto known = residences_.find(prepared.backend);
  if (known != residences_.end()) return known->second;
  const double bytes_per_set = expert_bytes(problem_.layer, *problem_.scheme) *
                               static_cast<double>(problem_.layer.local_experts());
  const std::int64_t sets = weight_sets_to_load(setup_.settings, prepared.backend->device(),
                                                weight_sets_wanted(prepared), bytes_per_set);
  auto loaded = ResidentLayer::load(*prepared.backend, problem_, workload_->experts(), sets);
  Residence residence =
      loaded ? Residence(std::move(loaded).value()) : Residence(std::move(loaded).error());
  return residences_.emplace(prepared.backend, std::move(residence)).first->second;
}

// The most that any case needs: of each routing, the one with the fewest tokens touches least.
std::int64_t LayerSession::weight_sets_wanted(const PreparedCase& prepared) const {
  std::map<std::string, std::int64_t> least_tokens;
  for (const CaseCoordinates& c : setup_.cases) {
    if (cache_from(c.cache) != Cache::cold_weights || c.tokens == 0) continue;
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
  return truths_.truth(at(rival.index()).routing, point.check.pool, rival.identity().numerics);
}

}  // namespace moegauge
