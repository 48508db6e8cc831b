#include "harness/measure/timed_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "harness/measure/rest.h"
#include "harness/measure/summary.h"

namespace moegauge {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A list with one entry a row; absent where the device did not tell it each time.
void add_samples(nlohmann::ordered_json& json, const char* name,
                 const std::vector<DeviceState>& states,
                 std::optional<double> DeviceState::*value) {
  const bool told = !states.empty() && std::ranges::all_of(states, [value](const auto& s) {
    return (s.*value).has_value();
  });
  if (!told) return;
  for (const DeviceState& state : states) json[name].push_back(*(state.*value));
}

void add_states(nlohmann::ordered_json& json, const std::vector<DeviceState>& states) {
  add_samples(json, "clock_mhz", states, &DeviceState::clock_mhz);
  add_samples(json, "memory_clock_mhz", states, &DeviceState::memory_clock_mhz);
  add_samples(json, "power_watts", states, &DeviceState::power_watts);
  add_samples(json, "temperature_celsius", states, &DeviceState::temperature_celsius);
  // By reason, in how many rows.
  for (const DeviceState& state : states) {
    for (const std::string& reason : state.throttle_reasons) {
      nlohmann::ordered_json& rows = json["throttled_rows"][reason];
      rows = rows.is_null() ? 1 : rows.get<int>() + 1;
    }
  }
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

std::optional<Fault> CeilingsMeter::measure() {
  auto measured = measure_();
  if (!measured) {
    Fault fault = std::move(measured).error();
    // The buffers are the harness's own, and no kernel asked for them.
    if (fault.kind == FaultKind::out_of_memory) fault.kind = FaultKind::infrastructure;
    return fault;
  }
  best_.read_bytes_per_s = std::max(best_.read_bytes_per_s, measured->read_bytes_per_s);
  best_.dot_flops_per_s = std::max(best_.dot_flops_per_s, measured->dot_flops_per_s);
  measured_ = true;
  return std::nullopt;
}

TimedRun::TimedRun(Runnable& plan, const TimedSetting& setting, CeilingsMeter& ceilings,
                   WeightTurn& turn)
    : plan_(&plan),
      setting_(setting),
      ceilings_(&ceilings),
      turn_(&turn),
      request_{.calls = calls_per_row(std::min(setting.sets_for_cold, setting.weight_sets),
                                      plan.slots(), setting.weight_sets),
               .cache = setting.cache,
               .launch = setting.launch} {}

std::optional<Fault> TimedRun::pilot(double row_seconds) {
  if (auto fault = choose_calls(row_seconds)) return fault;
  rest(rest_after(row_seconds, plan_->state()));  // the check and the pilot kept the device busy
  return std::nullopt;
}

std::optional<Fault> TimedRun::choose_calls(double row_seconds) {
  if (auto fault = ceilings_->measure_once()) return fault;
  // The first time touches what the check did not; the second counts.
  const auto seconds_of = [&](std::int64_t calls) -> Expected<double, Fault> {
    RunRequest request = request_;
    request.calls = calls;
    if (auto first = plan_->run(request); !first) return first;
    return plan_->run(request);
  };
  // Large batches of a small layer: a turn of all sets would take seconds.
  constexpr double longest_turn = 25;  // in rows
  const std::int64_t least = calls_per_row(1, plan_->slots(), setting_.weight_sets);
  if (request_.cache == Cache::cold_weights && request_.calls > least) {
    auto some = seconds_of(least);
    if (!some) return std::move(some).error();
    const double per_call = *some / static_cast<double>(least);
    rows_go_on_ = per_call * static_cast<double>(request_.calls) > longest_turn * row_seconds;
    if (rows_go_on_) {
      const auto to_fill = static_cast<std::int64_t>(std::ceil(row_seconds / per_call));
      request_.calls = calls_per_row(to_fill, plan_->slots(), setting_.weight_sets);
      return std::nullopt;
    }
  }
  auto whole = seconds_of(request_.calls);
  if (!whole) return std::move(whole).error();
  const double seconds = *whole;
  // Between calls of `cold` the caches are emptied, which takes far longer than most calls: no more
  // of them than one turn.
  if (request_.cache == Cache::cold) return std::nullopt;
  constexpr double most_calls = 1e5;
  const double per_call = std::max(seconds / static_cast<double>(request_.calls), 1e-9);
  const auto to_fill =
      static_cast<std::int64_t>(std::min(std::ceil(row_seconds / per_call), most_calls));
  request_.calls =
      calls_per_row(std::max(to_fill, request_.calls), plan_->slots(), setting_.weight_sets);
  return std::nullopt;
}

void TimedRun::rest(double seconds) {
  rested_seconds_ += seconds;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

Member TimedRun::member(std::string name) {
  const auto run = [this](std::int64_t calls) -> Expected<double, Fault> {
    RunRequest request = request_;
    request.calls = calls;
    if (rows_go_on_) request.first_set = turn_->take(calls, setting_.weight_sets);
    auto seconds = plan_->run(request);
    if (seconds && !(std::isfinite(*seconds) && *seconds >= 0)) {
      return Unexpected{Fault{FaultKind::error, "the device's clock went backwards or stopped"}};
    }
    if (seconds) {
      auto state = plan_->state();
      rest(rest_after(*seconds, state));
      if (state) states_.push_back(std::move(*state));
    }
    return seconds;
  };
  return {.name = std::move(name), .calls_per_row = request_.calls, .run = run};
}

Measured TimedRun::measured(MemberRows rows, std::int64_t rounds, const Work& work) {
  std::vector<double> samples_us = std::move(rows.seconds_per_call);
  for (double& sample : samples_us) sample *= 1e6;
  Measured result;
  result.latency = summarize(std::move(samples_us));
  const double median_us = result.latency.median;
  const auto roofline = [&] {
    return roofline_of(work, ceilings_->best(), median_us, request_.cache,
                       setting_.last_level_cache_bytes);
  };
  result.roofline = roofline();
  if (result.roofline.floor_us > median_us && !ceilings_->measure()) {
    result.roofline = roofline();
  }
  const bool too_few_sets = setting_.weight_sets < setting_.sets_for_cold;
  if (result.roofline.floor_us > median_us) {
    char text[256];
    std::snprintf(text, sizeof text, "the median of %.4g us is under the floor of %.4g us%s",
                  median_us, result.roofline.floor_us,
                  too_few_sets ? "; too few weight sets were loaded to keep caches cold" : "");
    result.suspect = true;
    result.suspect_reason = text;
  }
  result.tflops = median_us > 0 ? work.flops / median_us * 1e-6 : 0;
  result.gbytes_per_s = median_us > 0 ? work.bytes() / median_us * 1e-3 : 0;
  result.rounds = rounds;
  result.unstable = !rows.stable;
  result.telemetry = {{"launch", request_.launch == Launch::graph ? "graph" : "eager"},
                      {"calls_per_row", request_.calls},
                      {"slots", plan_->slots()},
                      {"weight_sets", setting_.weight_sets},
                      {"weight_sets_for_cold", setting_.sets_for_cold},
                      {"read_gbytes_per_s", ceilings_->best().read_bytes_per_s * 1e-9},
                      {"dot_tflops", ceilings_->best().dot_flops_per_s * 1e-12}};
  if (rested_seconds_ > 0) result.telemetry["rested_seconds"] = rested_seconds_;
  add_states(result.telemetry, states_);
  return result;
}

}  // namespace moegauge
