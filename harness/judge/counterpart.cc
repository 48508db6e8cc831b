#include "harness/judge/counterpart.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "harness/judge/numbers.h"
#include "reference/random/portable_math.h"

namespace moegauge {

std::optional<Mismatch> mismatch(const CaseRecord& now, const CaseRecord& then) {
  if (now.device != then.device) {
    return Mismatch{"device", now.device, then.device, "record a baseline on " + now.device};
  }
  if (now.seed != then.seed) {
    const std::string seed = std::to_string(then.seed);
    return Mismatch{"seed", std::to_string(now.seed), seed, "run again with --seed " + seed};
  }
  const auto& layer = now.measured()->check.layer;
  const auto& was_layer = then.measured()->check.layer;
  if (layer && was_layer && !(*layer == *was_layer)) {
    return Mismatch{"layer", describe(*layer), describe(*was_layer),
                    "the model's file is another; record a baseline of this layer"};
  }
  const std::string& executed = now.measured()->check.executed_scheme;
  const std::string& was_executed = then.measured()->check.executed_scheme;
  if (executed != was_executed) {
    return Mismatch{"executed scheme", executed, was_executed,
                    "make sure that this is meant, then record a new baseline"};
  }
  return std::nullopt;
}

namespace {

// 0 where the record does not say.
std::int64_t weight_sets(const CaseRecord& record) {
  const auto& telemetry = record.measured()->telemetry;
  const auto sets = telemetry.find("weight_sets");
  return sets != telemetry.end() && sets->is_number_integer() ? sets->get<std::int64_t>() : 0;
}

}  // namespace

std::vector<std::string> changes(const CaseRecord& now, const CaseRecord& then) {
  const CheckResult& check = now.measured()->check;
  const CheckResult& was_check = then.measured()->check;
  std::vector<std::string> list;
  if (!(check.numerics == was_check.numerics)) {
    list.push_back("the kernel declares other numerics (rounding points or accumulation)");
  }
  if (now.config.values != then.config.values) list.push_back("other config values");
  if (now.config.hash != then.config.hash) {
    list.push_back("other compiled code: " + now.config.hash + ", was " + then.config.hash);
  }
  if (const auto sets = weight_sets(now), were = weight_sets(then);
      sets > 0 && were > 0 && sets != were) {
    list.push_back("timed over " + std::to_string(sets) + " sets of weights in turn, was " +
                   std::to_string(were) + ": caches were not equally cold");
  }
  const double error = was_check.error.implementation.relative_l2;
  if (error > 0 && check.error.implementation.relative_l2 == 0) {
    list.push_back("the kernel became exact: its error was " + format_error(error));
  }
  const double cost = check.error.quantization.relative_l2;
  const double was_cost = was_check.error.quantization.relative_l2;
  if (cost != was_cost) {
    list.push_back("the format's own error is " + format_error(cost) + ", was " +
                   format_error(was_cost) + ": other inputs, scheme or oracle");
  }
  return list;
}

std::string why_not_ok(const CaseRecord& record) {
  const auto* unmeasured = std::get_if<Unmeasured>(&record.outcome);
  if (unmeasured == nullptr) return "";
  return std::string(to_string(unmeasured->status)) + " (" + unmeasured->reason + ")";
}

std::optional<LogEstimate> log_latency(const LatencySummary& latency) {
  if (!latency.samples.empty()) {
    const std::vector<double> means = round_means(latency.samples);
    return means.size() < least_rounds ? std::nullopt : log_median(means);
  }
  if (!(latency.median > 0 && latency.ci_low > 0 && latency.ci_high >= latency.ci_low)) {
    return std::nullopt;
  }
  const double z = normal_quantile(0.975);
  return LogEstimate{.value = std::log(latency.median),
                     .standard_error = std::log(latency.ci_high / latency.ci_low) / (2 * z)};
}

}  // namespace moegauge
