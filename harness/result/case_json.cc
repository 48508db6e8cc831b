#include "harness/result/case_json.h"

#include <cmath>
#include <stdexcept>

#include "harness/result/json_fields.h"
#include "harness/result/result_io.h"

namespace moegauge {

const std::array<std::string, 10> status_words = {
    "ok",      "inaccurate",    "unsupported",    "refused_config", "crashed",
    "timeout", "out_of_memory", "infrastructure", "error",          "skipped"};
const std::array<std::string, 2> precision_words = {"fp32", "activation_dtype"};
const std::array<std::string, 2> weight_on_input_words = {"gemm1", "x"};
const std::array<std::string, 2> accumulate_words = {"fp32", "reduced"};
const std::array<std::string, 4> config_source_words = {"default", "tuned", "file", "inline"};

namespace {

template <typename Enum, std::size_t n>
const std::string& word(const std::array<std::string, n>& words, Enum value) {
  return words.at(static_cast<std::size_t>(value));
}

Json coordinates_to_json(const CaseCoordinates& c) {
  Json json;
  json["op"] = c.op;
  if (!c.op_fields.empty()) json["op_fields"] = Json::parse(c.op_fields);
  json["model"] = c.model;
  if (c.layer >= 0) json["layer"] = c.layer;
  if (!c.fields.empty()) json["fields"] = Json::parse(c.fields);
  json["scheme"] = c.scheme;
  json["tp"] = c.tp;
  json["ep"] = c.ep;
  json["backend"] = c.backend;
  json["routing"] = c.routing;
  json["inputs"] = c.inputs;
  json["cache"] = c.cache;
  json["launch"] = c.launch;
  json["tokens"] = c.tokens;
  return json;
}

// `asked` is the suite's coordinate; the rest is what it came to.
Json config_to_json(const ConfigRecord& config, const std::string& asked) {
  Json json;
  json["asked"] = asked.starts_with('{') ? Json::parse(asked) : Json(asked);
  json["source"] = config.source.empty()
                       ? word(config_source_words, parse_config_request(asked, "config").kind)
                       : config.source;
  if (!config.file.empty()) json["file"] = config.file;
  if (config.key) json["key"] = *config.key;
  json["values"] = Json::object();
  for (const auto& [key, value] : config.values) json["values"][key] = value;
  if (!config.hash.empty()) json["hash"] = config.hash;
  if (!config.stale.empty()) json["stale"] = config.stale;
  return json;
}

Json latency_to_json(const LatencySummary& latency) {
  Json json;
  const auto put = [&](const char* name, double value) {
    json[name] = finite(value, std::string("latency_us.") + name);
  };
  put("median", latency.median);
  put("ci_low", latency.ci_low);
  put("ci_high", latency.ci_high);
  put("p10", latency.p10);
  put("p90", latency.p90);
  put("min", latency.min);
  put("max", latency.max);
  put("mean", latency.mean);
  json["samples"] = Json::array();
  for (const double sample : latency.samples) {
    json["samples"].push_back(finite(sample, "latency_us.samples"));
  }
  return json;
}

Json metrics_to_json(const ErrorMetrics& metrics) {
  Json json, reason;
  const auto put = [&](const char* name, double value) {
    json[name] = std::isfinite(value) ? Json(value) : Json();
    if (std::isnan(value)) {
      reason[name] = nan_word;
    } else if (std::isinf(value)) {
      reason[name] = value < 0 ? minus_infinite_word
                               : std::string(infinite_word) +
                                     (metrics.non_finite > 0
                                          ? ": outputs are not finite"
                                          : ": the reference is zero where the output is not");
    }
  };
  put("relative_l2", metrics.relative_l2);
  put("worst_token", metrics.worst_token);
  json["worst_token_row"] = metrics.worst_token_row;
  put("max_scaled", metrics.max_scaled);
  put("cosine", metrics.cosine);
  put("matched", metrics.matched);
  json["non_finite"] = metrics.non_finite;
  json["first_bad"] = metrics.first_bad ? Json(*metrics.first_bad) : Json();
  if (!reason.is_null()) json["reason"] = std::move(reason);
  return json;
}

void put_check(Json& json, const CheckResult& check) {
  Json& error = json["error"];
  error["implementation"] = metrics_to_json(check.error.implementation);
  error["quantization"] = metrics_to_json(check.error.quantization);
  error["total"] = metrics_to_json(check.error.total);
  error["quantization_of"] = check.error.quantization_of;
  if (check.layer) {
    json["shape"] = {{"experts", check.layer->experts},
                     {"local_experts", check.layer->local_experts},
                     {"top_k", check.layer->top_k},
                     {"hidden_size", check.layer->hidden_size},
                     {"intermediate_size", check.layer->intermediate_size},
                     {"dtype", word(dtype_words, check.layer->dtype)}};
  }
  json["executed_scheme"] = check.executed_scheme;
  Json& numerics = json["numerics"];
  // Of few kernels, as gemm2_out: files without them are of kernels that do not round there.
  if (check.numerics.weights != Precision::fp32) {
    numerics["weights"] = word(precision_words, check.numerics.weights);
  }
  numerics["gemm1_out"] = word(precision_words, check.numerics.gemm1_out);
  numerics["act_out"] = word(precision_words, check.numerics.act_out);
  if (check.numerics.gemm2_out != Precision::fp32) {
    numerics["gemm2_out"] = word(precision_words, check.numerics.gemm2_out);
  }
  numerics["pair_out"] = word(precision_words, check.numerics.pair_out);
  numerics["weight_on_input"] = word(weight_on_input_words, check.numerics.weight_on_input);
  numerics["accumulate"] = word(accumulate_words, check.numerics.accumulate);
  json["checked"]["tokens"] = check.checked.tokens;
  json["checked"]["rows"] = check.checked.rows;
}

void put_measured(Json& json, const Measured& measured) {
  json["latency_us"] = latency_to_json(measured.latency);
  put_check(json, measured.check);
  json["tflops"] = finite(measured.tflops, "tflops");
  json["gbytes_per_s"] = finite(measured.gbytes_per_s, "gbytes_per_s");
  Json& roofline = json["roofline"];
  roofline["floor_us"] = finite(measured.roofline.floor_us, "roofline.floor_us");
  roofline["floor_with_intermediates_us"] =
      finite(measured.roofline.floor_with_intermediates_us, "roofline.floor_with_intermediates_us");
  roofline["fraction"] = finite(measured.roofline.fraction, "roofline.fraction");
  json["sampling"]["rounds"] = measured.rounds;
  json["sampling"]["extrapolated"] = measured.extrapolated;
  if (!measured.stages_us.empty()) {
    for (const auto& [stage, us] : measured.stages_us)
      json["stages_us"][stage] = finite(us, "stages_us." + stage);
  }
  if (!measured.telemetry.is_null()) json["telemetry"] = measured.telemetry;
  json["unstable"] = measured.unstable;
  json["suspect"] = measured.suspect;
  if (!measured.suspect_reason.empty()) json["suspect_reason"] = measured.suspect_reason;
}

void put_unmeasured(Json& json, const Unmeasured& unmeasured) {
  if (unmeasured.status == Status::ok)
    throw std::invalid_argument("an ok record without a measurement");
  if (unmeasured.reason.empty())
    throw std::invalid_argument("a record that is not ok without a reason");
  json["reason"] = unmeasured.reason;
  if (!unmeasured.absent_backends.empty()) json["absent_backends"] = unmeasured.absent_backends;
  if (unmeasured.check) put_check(json, *unmeasured.check);
}

}  // namespace

Json case_to_json(const CaseRecord& record) {
  Json json;
  json["id"] = record.id();
  json.update(coordinates_to_json(record.coordinates));
  json["config"] = config_to_json(record.config, record.coordinates.config);
  if (!record.backend.empty()) json["executed_backend"] = record.backend;
  json["seed"] = record.seed;
  json["status"] = word(status_words, record.status());
  if (const auto* measured = record.measured()) {
    put_measured(json, *measured);
  } else {
    put_unmeasured(json, std::get<Unmeasured>(record.outcome));
  }
  json["device"] = record.device;
  json["repro"] = record.repro;
  if (!record.attempts.empty()) json["attempts"] = record.attempts;
  merge_missing(json, record.unknown);
  return json;
}

Json comparison_to_json(const Comparison& comparison) {
  Json json;
  json["point"] = comparison.point;
  json["a"] = comparison.a;
  json["b"] = comparison.b;
  json["ratio"] = finite(comparison.ratio, "ratio");
  json["ci_low"] = finite(comparison.ci_low, "ci_low");
  json["ci_high"] = finite(comparison.ci_high, "ci_high");
  json["pairs"] = comparison.pairs;
  return json;
}

std::string case_to_line(const CaseRecord& record) { return to_line(case_to_json(record)); }

}  // namespace moegauge
