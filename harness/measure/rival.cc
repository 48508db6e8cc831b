#include "harness/measure/rival.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "harness/measure/summary.h"

namespace moegauge {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

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

Unmeasured inaccurate(std::string reason, CheckResult check) {
  return {.status = Status::inaccurate, .reason = std::move(reason), .check = std::move(check)};
}

}  // namespace

int slots_for(std::int64_t tokens, Cache cache, Launch launch) {
  if (cache == Cache::hot) return 1;
  if (launch == Launch::graph) return tokens < 2048 ? 8 : 4;
  for (const int slots : {8, 4, 2}) {
    if (tokens * slots <= 32) return slots;
  }
  return 1;
}

std::int64_t calls_per_row(std::int64_t wanted, std::int64_t slots, std::int64_t weight_sets) {
  const std::int64_t calls = round_up(std::max<std::int64_t>(wanted, 1), slots);
  return calls <= weight_sets ? calls : round_up(calls, std::lcm(slots, weight_sets));
}

Unmeasured from_fault(const Fault& fault) {
  const Status status = fault.kind == FaultKind::out_of_memory    ? Status::out_of_memory
                        : fault.kind == FaultKind::infrastructure ? Status::infrastructure
                                                                  : Status::error;
  return {.status = status, .reason = fault.sentence, .check = std::nullopt};
}

Rival::Rival(std::size_t index, PreparedCase prepared, ResidentLayer& resident)
    : index_(index), prepared_(std::move(prepared)), resident_(&resident) {}

std::optional<Fault> Rival::plan(const Point& point) {
  auto plan =
      resident_->layer().plan(point.tokens, prepared_.config, static_cast<int>(point.timed.size()));
  if (!plan) return std::move(plan).error();
  plan_ = std::move(plan).value();
  prepared_.config_record.hash = plan_->identity().hash;
  work_ = mean_work(prepared_, plan_->identity().numerics, point.timed);
  if (point.cache == Cache::cold_weights) {
    sets_for_cold_ =
        weight_sets_for_cold(work_.weight_bytes, resident_->device().last_level_cache_bytes);
  }
  const Launch launch = prepared_.backend->serves_graphs() ? point.launch : Launch::eager;
  request_ = {.calls = 1, .cache = point.cache, .launch = launch};
  request_.calls = calls_per_row(std::min(sets_for_cold_, resident_->weight_sets()), plan_->slots(),
                                 resident_->weight_sets());
  return std::nullopt;
}

Yardstick Rival::yardstick(const Point& point, const Truth& truth) const {
  const Layer& layer = prepared_.problem.layer;
  const bool reduced = plan_->identity().numerics.accumulate == Accumulate::reduced;
  return {layer, point.check, truth, prepared_.problem.scheme->error_limits(layer.dtype, reduced)};
}

CheckResult Rival::check_result(const CheckOutcome& outcome, const Point& point) const {
  ErrorReport error = outcome.error;
  error.quantization_of = point.quantization_of;
  const Checked checked = {.tokens = point.check.pool.tokens, .rows = error.implementation.rows};
  return {.executed_scheme = plan_->identity().executed_scheme,
          .numerics = plan_->identity().numerics,
          .error = std::move(error),
          .checked = checked};
}

std::optional<Unmeasured> Rival::check(const Point& point, const Truth& truth) {
  auto outcome = check_plan(*plan_, yardstick(point, truth), request_, resident_->weight_sets());
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
  // The first turn touches what the check did not; the second is timed.
  double seconds = 0;
  for (int turn = 0; turn < 2; ++turn) {
    auto measured = plan_->run(request_);
    if (!measured) return std::move(measured).error();
    seconds = *measured;
  }
  // Between calls of `cold` the caches are emptied, which takes far longer than most calls: no more
  // of them than one turn.
  if (request_.cache == Cache::cold) return std::nullopt;
  constexpr double most_calls = 1e5;
  const double per_call = std::max(seconds / static_cast<double>(request_.calls), 1e-9);
  const auto to_fill =
      static_cast<std::int64_t>(std::min(std::ceil(row_seconds / per_call), most_calls));
  request_.calls =
      calls_per_row(std::max(to_fill, request_.calls), plan_->slots(), resident_->weight_sets());
  return std::nullopt;
}

Member Rival::member(std::string name) {
  const auto run = [this](std::int64_t calls) -> Expected<double, Fault> {
    RunRequest request = request_;
    request.calls = calls;
    auto seconds = plan_->run(request);
    if (seconds && !(std::isfinite(*seconds) && *seconds >= 0)) {
      return Unexpected{Fault{FaultKind::error, "the device's clock went backwards or stopped"}};
    }
    return seconds;
  };
  return {.name = std::move(name), .calls_per_row = request_.calls, .run = run};
}

std::optional<Unmeasured> Rival::check_again(const Point& point, const Truth& truth) {
  // Where the truth itself overflows, so may a timed output.
  const bool truth_is_finite =
      std::ranges::all_of(truth.emulated, [](double value) { return std::isfinite(value); });
  if (truth_is_finite) {
    auto bad = non_finite_output(*plan_, prepared_.problem.layer, point.tokens);
    if (!bad) return from_fault(bad.error());
    if (*bad) return inaccurate(**bad, check_);
  }
  auto outcome = check_replay(*plan_, yardstick(point, truth), request_);
  if (!outcome) return from_fault(outcome.error());
  if (outcome->wrong) {
    return inaccurate("wrong after timing though right before: " + *outcome->wrong,
                      check_result(*outcome, point));
  }
  return std::nullopt;
}

Measured Rival::measured(MemberRows rows, std::int64_t rounds) {
  std::vector<double> samples_us = std::move(rows.seconds_per_call);
  for (double& sample : samples_us) sample *= 1e6;
  Measured result;
  result.check = check_;
  result.latency = summarize(std::move(samples_us));
  const double median_us = result.latency.median;
  const auto roofline = [&] {
    return roofline_of(work_, resident_->ceilings(), median_us, request_.cache,
                       resident_->device().last_level_cache_bytes);
  };
  result.roofline = roofline();
  if (result.roofline.floor_us > median_us && !resident_->measure_ceilings()) {
    result.roofline = roofline();
  }
  const bool too_few_sets = resident_->weight_sets() < sets_for_cold_;
  if (result.roofline.floor_us > median_us) {
    char text[256];
    std::snprintf(text, sizeof text, "the median of %.4g us is under the floor of %.4g us%s",
                  median_us, result.roofline.floor_us,
                  too_few_sets ? "; memory held too few weight sets to keep caches cold" : "");
    result.suspect = true;
    result.suspect_reason = text;
  }
  result.tflops = median_us > 0 ? work_.flops / median_us * 1e-6 : 0;
  result.gbytes_per_s = median_us > 0 ? work_.bytes() / median_us * 1e-3 : 0;
  result.rounds = rounds;
  result.extrapolated = prepared_.extrapolated;
  result.unstable = !rows.stable;
  result.telemetry = {{"launch", request_.launch == Launch::graph ? "graph" : "eager"},
                      {"calls_per_row", request_.calls},
                      {"slots", plan_->slots()},
                      {"weight_sets", resident_->weight_sets()},
                      {"weight_sets_for_cold", sets_for_cold_},
                      {"read_gbytes_per_s", resident_->ceilings().read_bytes_per_s * 1e-9},
                      {"dot_tflops", resident_->ceilings().dot_flops_per_s * 1e-12}};
  return result;
}

}  // namespace moegauge
