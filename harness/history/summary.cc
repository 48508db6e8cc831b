#include "harness/history/summary.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/history/utc.h"
#include "harness/json/document.h"
#include "harness/judge/counterpart.h"
#include "harness/result/result_io.h"
#include "reference/base/fnv1a.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// Written in place of a reason: a record without its latency needs one.
const std::string kept_without_numbers = "as the history keeps it";

std::optional<std::int64_t> time_in_context(const Result& result, const std::string& key,
                                            const std::string& where) {
  const std::string text = context_value(result, key);
  if (text.empty()) return std::nullopt;
  const auto seconds = utc_seconds(text);
  if (!seconds) {
    throw InputError(where, "the context's " + key + " is no time: '" + text + "'",
                     "2026-11-30T17:10:35+00:00 is one");
  }
  return seconds;
}

std::int64_t date_of(const Result& result, const std::string& where) {
  const auto& machine = result.machine;
  const auto date = machine.is_object() ? machine.find("date") : machine.end();
  const bool text = machine.is_object() && date != machine.end() && date->is_string();
  const auto seconds = text ? utc_seconds(date->get<std::string>()) : std::nullopt;
  if (!seconds) throw InputError(where, "the context has no date", "give a result of moegauge run");
  return *seconds;
}

void forget_numbers(ErrorMetrics& metrics) { metrics = ErrorMetrics{}; }

std::string variant_of(CaseRecord record) {
  Unmeasured outcome{.status = Status::inaccurate, .reason = kept_without_numbers};
  if (const Measured* measured = record.measured()) {
    outcome.check = measured->check;
    forget_numbers(outcome.check->error.implementation);
    forget_numbers(outcome.check->error.quantization);
    forget_numbers(outcome.check->error.total);
  }
  record.outcome = std::move(outcome);
  record.config.hash.clear();  // in the point
  record.config.stale.clear();
  record.repro.clear();
  record.attempts.clear();
  record.unknown = {};
  return case_to_line(record);
}

const CheckResult* check_of(const CaseRecord& record) {
  if (const Measured* measured = record.measured()) return &measured->check;
  const auto& unmeasured = std::get<Unmeasured>(record.outcome);
  return unmeasured.check ? &*unmeasured.check : nullptr;
}

HistoryPoint point_of(const CaseRecord& record) {
  HistoryPoint point{.status = record.status(),
                     .kernel = record.config.hash,
                     .config = config_hash(record.config)};
  if (const CheckResult* check = check_of(record)) {
    const ErrorReport& e = check->error;
    point.errors = {.implementation = e.implementation.relative_l2,
                    .quantization = e.quantization.relative_l2,
                    .total = e.total.relative_l2,
                    .worst_implementation = e.implementation.worst_token,
                    .worst_quantization = e.quantization.worst_token,
                    .worst_total = e.total.worst_token};
  }
  if (const Measured* measured = record.measured()) {
    const LatencySummary& latency = measured->latency;
    point.unstable = measured->unstable;
    point.suspect = measured->suspect;
    point.median = latency.median;
    point.ci_low = latency.ci_low;
    point.ci_high = latency.ci_high;
    if (const auto log = log_latency(latency)) {
      point.centre = std::exp(log->value);
      point.within = log->standard_error;
    }
  }
  return point;
}

void restore(ErrorMetrics& metrics, double relative_l2, double worst_token) {
  metrics.relative_l2 = relative_l2;
  metrics.worst_token = worst_token;
}

}  // namespace

std::string context_value(const Result& result, std::string_view key) {
  for (const auto& [name, value] : result.context) {
    if (name == key) return value;
  }
  return "";
}

std::string config_hash(const ConfigRecord& config) {
  std::string text;
  for (const auto& [key, value] : config.values) text += key + "=" + std::to_string(value) + ",";
  return fnv1a_hex(text);
}

std::string history_device_key(const std::string& device, const Result& result) {
  const std::string facts =
      context_value(result, device_context_prefix + device.substr(0, device.find('/')));
  return facts.empty() ? device : device + ", " + facts;
}

std::string content_of(const Result& result) {
  std::string text;
  if (result.machine.is_object())
    text = result.machine.value("date", nlohmann::ordered_json()).dump();
  for (CaseRecord record : result.cases) {
    record.repro.clear();  // holds paths
    text += "\n" + case_to_line(record);
  }
  return fnv1a_hex(text) + "-" + std::to_string(text.size());
}

RunSummary summarise(const Result& result, const GivenCommit& given, const std::string& where) {
  if (result.cases.empty()) throw InputError(where, "the result holds no case", "give a whole one");
  RunSummary summary;
  HistoryRun& run = summary.run;
  run.content = content_of(result);
  run.run_time = date_of(result, where);
  run.commit = given.commit.empty() ? context_value(result, "commit") : given.commit;
  run.commit_time = given.time ? given.time : time_in_context(result, "commit_time", where);
  run.suite = context_value(result, "suite");
  for (const CaseRecord& record : result.cases) {
    summary.cases.push_back({.id = record.id(),
                             .device = history_device_key(record.device, result),
                             .variant = variant_of(record),
                             .point = point_of(record)});
    ++run.cases;
    run.ok_cases += record.measured() != nullptr;
  }
  return summary;
}

CaseRecord read_variant(const std::string& line) {
  const JsonDocument document = JsonDocument::parse(line, "a case of the history");
  return case_from_json(document.root(), document.where());
}

CaseRecord record_from(const HistoryPoint& point, CaseRecord record) {
  record.config.hash = point.kernel;
  Measured measured;
  auto& outcome = std::get<Unmeasured>(record.outcome);
  if (outcome.check) measured.check = std::move(*outcome.check);
  ErrorReport& error = measured.check.error;
  restore(error.implementation, point.errors.implementation, point.errors.worst_implementation);
  restore(error.quantization, point.errors.quantization, point.errors.worst_quantization);
  restore(error.total, point.errors.total, point.errors.worst_total);
  LatencySummary& latency = measured.latency;
  latency.median = latency.mean = point.median;
  latency.min = latency.p10 = latency.ci_low = point.ci_low;
  latency.max = latency.p90 = latency.ci_high = point.ci_high;
  measured.unstable = point.unstable;
  measured.suspect = point.suspect;
  record.outcome = std::move(measured);
  return record;
}

}  // namespace moegauge
