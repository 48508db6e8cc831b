#include "harness/measure/profile.h"

#include <optional>
#include <utility>

#include "harness/measure/session.h"
#include "harness/workload/workload.h"
#include "reference/base/input_error.h"
#include "reference/inputs/exact.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

Expected<ProfiledLaunch, Fault> launch(const PreparedCase& prepared, const Workload& workload,
                                       const CaseCoordinates& c) {
  auto loaded = prepared.backend->load(prepared.problem, workload.experts(), 1);
  if (!loaded) return Unexpected{std::move(loaded).error()};
  auto plan = (*loaded)->plan(c.tokens, prepared.config, 1);
  if (!plan) return Unexpected{std::move(plan).error()};
  const OwnedInputs inputs = workload.draw(c.routing, c.tokens, kFirstTimedStream);
  if (auto fault = (*plan)->set_inputs(0, inputs.view())) return Unexpected{std::move(*fault)};
  RunRequest request = {.calls = 1, .cache = cache_from(c.cache), .launch = Launch::eager};
  if (auto warm = (*plan)->run(request); !warm) return Unexpected{std::move(warm).error()};
  request.profiled = true;
  auto seconds = (*plan)->run(request);
  if (!seconds) return Unexpected{std::move(seconds).error()};
  return ProfiledLaunch{prepared.backend, (*plan)->identity(), *seconds};
}

}  // namespace

Expected<ProfiledLaunch, Unmeasured> profile_case(const CaseCoordinates& c,
                                                  std::span<const Backend* const> backends,
                                                  const std::filesystem::path& root,
                                                  std::uint64_t seed) {
  if (find_op(c.op) != nullptr) {
    throw InputError("--profile", "the case is of the single op " + c.op,
                     "name a case of fused_moe");
  }
  const Problem problem = problem_of(c, root);
  if (distribution_from(c.inputs) == Distribution::exact) {
    if (auto why = no_exact_inputs(problem.layer, problem.scheme->traits())) {
      return Unexpected{unmeasured(Status::unsupported, std::move(*why))};
    }
  }
  auto prepared = prepare_case(c, problem, backends, root);
  if (!prepared) return Unexpected{std::move(prepared).error().outcome};
  const auto workload = make_workload(c, problem, root, {.seed = seed});
  auto launched = launch(*prepared, *workload, c);
  if (!launched) return Unexpected{from_fault(launched.error())};
  return std::move(launched).value();
}

}  // namespace moegauge
