#include "harness/measure/rival.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace moegauge {
namespace {

Work mean_work(const PreparedCase& prepared, const Numerics& numerics,
               const std::vector<OwnedInputs>& timed) {
  Work sum;
  for (const OwnedInputs& inputs : timed) {
    const Work work =
        work_of(prepared.problem.layer, *prepared.problem.scheme, numerics, inputs.view());
    sum.weight_bytes += work.weight_bytes;
    sum.activation_bytes += work.activation_bytes;
    sum.intermediate_bytes += work.intermediate_bytes;
    sum.flops += work.flops;
  }
  const auto count = static_cast<double>(timed.size());
  return {sum.weight_bytes / count, sum.activation_bytes / count, sum.intermediate_bytes / count,
          sum.flops / count};
}

}  // namespace

Rival::Rival(std::size_t index, PreparedCase prepared, ResidentLayer& resident)
    : index_(index), prepared_(std::move(prepared)), resident_(&resident) {}

std::optional<Fault> Rival::plan(const Point& point) {
  auto plan =
      resident_->layer().plan(point.tokens, prepared_.config, static_cast<int>(point.timed.size()));
  if (!plan) return std::move(plan).error();
  plan_ = std::move(plan).value();
  prepared_.config_record.hash = plan_->identity().hash;
  work_ = mean_work(prepared_, plan_->identity().numerics, point.timed);
  const std::int64_t cache_bytes = resident_->device().last_level_cache_bytes;
  const TimedSetting setting = {
      .cache = point.cache,
      .launch = prepared_.backend->serves_graphs() ? point.launch : Launch::eager,
      .weight_sets = resident_->weight_sets(),
      .sets_for_cold = point.cache == Cache::cold_weights
                           ? weight_sets_for_cold(work_.weight_bytes, cache_bytes)
                           : 1,
      .last_level_cache_bytes = cache_bytes};
  timing_.emplace(*plan_, setting, resident_->ceilings(), resident_->turn());
  return std::nullopt;
}

Yardstick Rival::yardstick(const Point& point, const Truth& truth) const {
  const Layer& layer = prepared_.problem.layer;
  const bool reduced = plan_->identity().numerics.accumulate == Accumulate::reduced;
  return {layer, point.check, truth,
          prepared_.problem.scheme->error_limits(layer.dtype, reduced)
              .over(point.check.repeated.inputs.tokens)};
}

CheckResult Rival::check_result(const CheckOutcome& outcome, const Point& point) const {
  ErrorReport error = outcome.error;
  error.quantization_of = point.quantization_of;
  const Checked checked = {.tokens = point.check.pool.tokens, .rows = error.implementation.rows};
  return {.layer = shape_of(prepared_.problem.layer),
          .executed_scheme = plan_->identity().executed_scheme,
          .numerics = plan_->identity().numerics,
          .error = std::move(error),
          .checked = checked};
}

std::optional<Unmeasured> Rival::check(const Point& point, const Truth& truth) {
  auto outcome =
      check_plan(*plan_, yardstick(point, truth), timing_->request(), resident_->weight_sets());
  if (!outcome) return from_fault(outcome.error());
  check_ = check_result(*outcome, point);
  output_ = std::move(outcome->output);
  if (outcome->not_comparable) {
    return Unmeasured{Status::error, *outcome->not_comparable, std::nullopt};
  }
  if (outcome->wrong) return inaccurate(*outcome->wrong, check_);
  return std::nullopt;
}

std::optional<Fault> Rival::pilot(const Point& point, double row_seconds) {
  for (std::size_t slot = 0; slot < point.timed.size(); ++slot) {
    if (auto fault = plan_->set_inputs(static_cast<int>(slot), point.timed[slot].view())) {
      return fault;
    }
  }
  return timing_->pilot(row_seconds);
}

std::optional<Unmeasured> Rival::check_again(const Point& point, const Truth& truth) {
  if (point.stages) {
    auto seconds = plan_->stage_seconds(timing_->request());
    if (!seconds) return from_fault(seconds.error());
    stage_seconds_ = std::move(*seconds);
  }
  // Where the truth itself overflows, so may a timed output.
  const bool truth_is_finite =
      std::ranges::all_of(truth.emulated, [](double value) { return std::isfinite(value); });
  if (truth_is_finite) {
    auto bad = non_finite_output(*plan_, prepared_.problem.layer, point.tokens);
    if (!bad) return from_fault(bad.error());
    if (*bad) return inaccurate(**bad, check_);
  }
  auto outcome = check_replay(*plan_, yardstick(point, truth), timing_->request());
  if (!outcome) return from_fault(outcome.error());
  if (outcome->wrong) {
    return inaccurate("wrong after timing though right before: " + *outcome->wrong,
                      check_result(*outcome, point));
  }
  return std::nullopt;
}

Measured Rival::measured(MemberRows rows, std::int64_t rounds) {
  Measured result = timing_->measured(std::move(rows), rounds, work_);
  result.check = check_;
  for (const auto& [stage, seconds] : stage_seconds_) result.stages_us[stage] = seconds * 1e6;
  result.extrapolated = prepared_.extrapolated;
  return result;
}

}  // namespace moegauge
