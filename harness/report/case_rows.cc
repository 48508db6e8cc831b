// One row per case.
#include <cmath>
#include <map>

#include "harness/judge/counterpart.h"
#include "harness/judge/findings.h"
#include "harness/report/row_parts.h"
#include "reference/base/input_error.h"

namespace moegauge {

Varying varying_of(const ReportInput& input) {
  Varying varying;
  const CaseCoordinates* first = nullptr;
  for (const ReportFile& file : input.files) {
    for (const CaseRecord& record : file.result.cases) {
      const CaseCoordinates& c = record.coordinates;
      if (first == nullptr) first = &c;
      varying.op |= op_label(c) != op_label(*first);
      varying.routing |= c.routing != first->routing;
      varying.inputs |= c.inputs != first->inputs;
      varying.cache |= c.cache != first->cache;
      varying.launch |= c.launch != first->launch;
    }
  }
  varying.file = input.files.size() > 1;
  return varying;
}

std::string shown_config(const CaseCoordinates& c) {
  return c.config.starts_with('{') ? "#" + text_hash8(c.config) : c.config;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

void put_finite(Row& row, const char* name, double value) {
  if (std::isfinite(value)) row[name] = value;
}

std::string values_text(const ConfigRecord& config) {
  std::vector<std::string> words;
  for (const auto& [key, value] : config.values) words.push_back(key + "=" + std::to_string(value));
  return joined(words, " ");
}

namespace {

// What a chart's panel is about: everything that one curve over tokens keeps fixed, and of the rest
// only what differs anywhere in this report. `layer` may have the scheme after it.
std::string panel_of(const CaseCoordinates& c, const std::string& layer, const Varying& varying) {
  std::vector<std::string> words = {layer};
  if (varying.op) words.push_back(op_label(c));
  if (varying.routing) words.push_back(c.routing);
  if (varying.inputs) words.push_back(c.inputs);
  if (varying.launch) words.push_back(c.launch);
  return joined(words, " · ");
}

void put_facts(Row& row, const CaseCoordinates& c, const Varying& varying,
               const std::optional<LayerFacts>& facts) {
  if (!facts) return;
  row["experts"] = facts->experts;
  const std::string shape = "K=" + std::to_string(facts->hidden) +
                            " N=" + std::to_string(facts->intermediate) + " top-" +
                            std::to_string(facts->top_k);
  row["shape_panel"] = panel_of(c, shape, varying);
}

void put_check(Row& row, const CaseRecord& record, const CheckResult& check,
               const ReportInput& input) {
  const ErrorReport& error = check.error;
  put_finite(row, "implementation", error.implementation.relative_l2);
  put_finite(row, "quantization", error.quantization.relative_l2);
  put_finite(row, "total", error.total.relative_l2);
  put_finite(row, "worst_token", error.implementation.worst_token);
  const auto shipped = input.shipped(record, check);
  if (!shipped) return;  // drawn without limits
  const ErrorLimits limits =
      limits_in_force(input.policy.error_rule(record.coordinates), input.policy.total, *shipped);
  row["limit_implementation"] = limits.relative_l2;
  row["limit_worst_token"] = limits.worst_token;
  if (const auto total = limits.total(error.quantization.relative_l2)) row["limit_total"] = *total;
}

// The first clock that the device told, in MHz.
std::optional<double> clock_of(const nlohmann::ordered_json& telemetry) {
  if (!telemetry.is_object()) return std::nullopt;
  for (const char* key : {"sm_clock_mhz", "clock_mhz"}) {
    const auto found = telemetry.find(key);
    if (found == telemetry.end()) continue;
    const nlohmann::ordered_json& value =
        found->is_array() && !found->empty() ? found->front() : *found;
    if (value.is_number()) return value.get<double>();
  }
  return std::nullopt;
}

void put_measured(Row& row, const Measured& measured) {
  row["median"] = measured.latency.median;
  row["low"] = measured.latency.ci_low;
  row["high"] = measured.latency.ci_high;
  if (measured.roofline.floor_us > 0) {
    row["floor"] = measured.roofline.floor_us;
    row["fraction"] = measured.roofline.fraction;
  }
  row["tflops"] = measured.tflops;
  row["gbytes"] = measured.gbytes_per_s;
  if (const auto clock = clock_of(measured.telemetry)) row["clock"] = *clock;
  std::vector<std::string> marks;
  if (measured.unstable) marks.push_back("unstable");
  if (measured.suspect) marks.push_back("suspect: " + measured.suspect_reason);
  if (measured.extrapolated) marks.push_back("extrapolated");
  if (!marks.empty()) row["marks"] = joined(marks, ", ");
}

void put_verdict(Row& row, const CaseVerdict& verdict) {
  row["verdict"] = std::string(to_string(verdict.verdict));
  row["why"] = verdict.sentence();
  if (!verdict.latency) return;
  row["baseline"] = verdict.latency->baseline_us;
  row["ratio"] = verdict.latency->ratio;
  row["ratio_low"] = verdict.latency->low;
  row["ratio_high"] = verdict.latency->high;
}

}  // namespace

Row coordinates_row(const CaseRecord& record, const ReportFile& file, const Varying& varying) {
  const CaseCoordinates& c = record.coordinates;
  const std::string layer = c.model + (c.layer >= 0 ? "@" + std::to_string(c.layer) : "") + " tp" +
                            std::to_string(c.tp) + ".ep" + std::to_string(c.ep);
  const std::string backend = record.backend.empty() ? c.backend : record.backend;
  const std::string config = shown_config(c);
  Row row;
  row["op"] = op_label(c);
  row["model"] = c.model;
  row["layer"] = layer;
  row["scheme"] = c.scheme;
  row["backend"] = backend;
  row["config"] = config;
  row["routing"] = c.routing;
  row["inputs"] = c.inputs;
  row["cache"] = c.cache;
  row["launch"] = c.launch;
  row["tokens"] = c.tokens;
  row["device"] = record.device;
  row["file"] = file.name;
  row["panel"] = panel_of(c, layer + " · " + c.scheme, varying);
  row["layer_panel"] = panel_of(c, layer, varying);  // for charts that compare schemes
  row["series"] = backend + " · " + config + (varying.cache ? " · " + c.cache : "") +
                  (varying.file ? " · " + file.name : "");
  return row;
}

std::vector<Row> case_rows(const ReportInput& input, const std::vector<Judgement>& judgements,
                           const Varying& varying) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < input.files.size(); ++i) {
    const ReportFile& file = input.files[i];
    std::map<std::string, const CaseVerdict*> verdicts;
    if (i < judgements.size()) {
      for (const CaseVerdict& verdict : judgements[i].cases) verdicts[verdict.id] = &verdict;
    }
    for (const CaseRecord& record : file.result.cases) {
      Row row = coordinates_row(record, file, varying);
      row["id"] = record.id();
      row["status"] = std::string(to_string(record.status()));
      const auto* unmeasured = std::get_if<Unmeasured>(&record.outcome);
      const CheckResult* check = record.measured()   ? &record.measured()->check
                                 : unmeasured->check ? &*unmeasured->check
                                                     : nullptr;
      if (unmeasured) row["reason"] = unmeasured->reason;
      if (record.measured()) put_measured(row, *record.measured());
      if (check) put_check(row, record, *check, input);
      put_facts(row, record.coordinates, varying,
                input.facts ? input.facts(record.coordinates) : std::nullopt);
      row["values"] = values_text(record.config);
      row["repro"] = record.repro;
      if (const auto found = verdicts.find(record.id()); found != verdicts.end())
        put_verdict(row, *found->second);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<Row> stage_rows(const ReportInput& input, const Varying& varying) {
  std::vector<Row> rows;
  for (const ReportFile& file : input.files) {
    for (const CaseRecord& record : file.result.cases) {
      if (!record.measured()) continue;
      const Measured& measured = *record.measured();
      for (const auto& [stage, us] : measured.stages_us) {
        Row row = coordinates_row(record, file, varying);
        row["stage"] = stage;
        row["us"] = us;
        put_finite(row, "total", measured.check.error.total.relative_l2);
        row["median"] = measured.latency.median;
        row["low"] = measured.latency.ci_low;
        row["high"] = measured.latency.ci_high;
        row["values"] = values_text(record.config);
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace moegauge
