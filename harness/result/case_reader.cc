// Case records from JSON.
#include <limits>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "harness/result/case_json.h"
#include "harness/result/contradictions.h"
#include "harness/result/json_fields.h"
#include "harness/result/result_io.h"

namespace moegauge {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t any_count = std::numeric_limits<std::int64_t>::max();

template <typename Enum, std::size_t n>
Enum read_word(const JsonCursor& cursor, const std::array<std::string, n>& words,
               std::string_view what) {
  return static_cast<Enum>(cursor.one_of(words, what));
}

std::vector<std::string> read_strings(const JsonCursor& cursor) {
  std::vector<std::string> strings;
  for (const auto& item : cursor.items()) strings.push_back(item.string());
  return strings;
}

std::string string_or_empty(const JsonCursor& cursor, std::string_view key) {
  const auto found = cursor.find(key);
  return found ? found->string() : "";
}

CaseCoordinates read_coordinates(const JsonCursor& top) {
  CaseCoordinates c;
  c.op = top.at("op").string();
  if (const auto fields = top.find("op_fields")) {
    c.op_fields = op_fields_text(op_fields_from(fields->json().dump(), fields->place()));
  }
  c.model = top.at("model").string();
  if (const auto layer = top.find("layer")) c.layer = layer->integer(0, any_count);
  if (const auto fields = top.find("fields")) c.fields = nlohmann::json(fields->json()).dump();
  c.scheme = top.at("scheme").string();
  c.tp = top.at("tp").integer(1, any_count);
  c.ep = top.at("ep").integer(1, any_count);
  c.backend = top.at("backend").string();
  c.routing = top.at("routing").string();
  c.inputs = top.at("inputs").string();
  c.cache = top.at("cache").string();
  c.launch = top.at("launch").string();
  c.tokens = top.at("tokens").integer(0, max_tokens);
  const auto asked = top.at("config").at("asked");
  if (asked.is_object()) {
    Config config;
    for (const auto& [key, value] : asked.members())
      config.values[key] = value.integer(0, INT32_MAX);
    c.config = inline_config(config);
  } else {
    c.config = asked.string();
  }
  return c;
}

ConfigRecord read_config(const JsonCursor& cursor) {
  ConfigRecord config;
  config.source =
      config_source_words[cursor.at("source").one_of(config_source_words, "config source")];
  config.file = string_or_empty(cursor, "file");
  if (const auto key = cursor.find("key")) config.key = key->integer(0, any_count);
  for (const auto& [key, value] : cursor.at("values").members()) {
    config.values[key] = value.integer(std::numeric_limits<std::int64_t>::min(), any_count);
  }
  config.hash = string_or_empty(cursor, "hash");
  if (const auto stale = cursor.find("stale")) config.stale = read_strings(*stale);
  return config;
}

LatencySummary read_latency(const JsonCursor& cursor) {
  const auto get = [&](const char* name) { return cursor.at(name).number(0, infinity); };
  LatencySummary latency{.median = get("median"),
                         .ci_low = get("ci_low"),
                         .ci_high = get("ci_high"),
                         .p10 = get("p10"),
                         .p90 = get("p90"),
                         .min = get("min"),
                         .max = get("max"),
                         .mean = get("mean")};
  for (const auto& item : cursor.at("samples").items())
    latency.samples.push_back(item.number(0, infinity));
  refuse_contradictions(cursor, latency);
  return latency;
}

// A metric, or what `reason` says in its place.
double read_metric(const JsonCursor& metrics, const char* name) {
  const auto value = metrics.at(name);
  if (!value.is_null()) return value.number(-infinity, infinity);
  const auto reasons = metrics.find("reason");
  const auto reason = reasons ? reasons->find(name) : std::nullopt;
  if (!reason) value.fail("null without a reason", "say in \"reason\" why it is no number");
  const std::string text = reason->string();
  if (text.starts_with(infinite_word)) return infinity;
  if (text.starts_with(minus_infinite_word)) return -infinity;
  if (text == nan_word) return std::numeric_limits<double>::quiet_NaN();
  reason->fail(in_quotes(text) + " does not say which value null stands for",
               std::string(infinite_word) + ", " + minus_infinite_word + " or " + nan_word);
}

ErrorMetrics read_metrics(const JsonCursor& cursor) {
  ErrorMetrics metrics;
  metrics.relative_l2 = read_metric(cursor, "relative_l2");
  metrics.worst_token = read_metric(cursor, "worst_token");
  metrics.worst_token_row = cursor.at("worst_token_row").integer(-1, any_count);
  metrics.max_scaled = read_metric(cursor, "max_scaled");
  metrics.cosine = read_metric(cursor, "cosine");
  metrics.matched = read_metric(cursor, "matched");
  metrics.non_finite = cursor.at("non_finite").integer(0, any_count);
  if (const auto bad = cursor.at("first_bad"); !bad.is_null())
    metrics.first_bad = bad.integer(0, any_count);
  refuse_contradictions(cursor, metrics);
  return metrics;
}

CheckResult read_check(const JsonCursor& top) {
  CheckResult check;
  const auto error = top.at("error");
  check.error.implementation = read_metrics(error.at("implementation"));
  check.error.quantization = read_metrics(error.at("quantization"));
  check.error.total = read_metrics(error.at("total"));
  check.error.quantization_of = error.at("quantization_of").string();
  if (const auto layer = top.find("shape")) {
    const auto count = [&](const char* key) { return layer->at(key).integer(0, any_count); };
    check.layer = {.experts = count("experts"),
                   .local_experts = count("local_experts"),
                   .top_k = count("top_k"),
                   .hidden_size = count("hidden_size"),
                   .intermediate_size = count("intermediate_size"),
                   .dtype = read_word<Dtype>(layer->at("dtype"), dtype_words, "dtype")};
  }
  check.executed_scheme = top.at("executed_scheme").string();
  const auto numerics = top.at("numerics");
  const auto precision = [&](const char* key) {
    return read_word<Precision>(numerics.at(key), precision_words, "precision");
  };
  const auto precision_or_fp32 = [&](const char* key) {
    return numerics.find(key) ? precision(key) : Precision::fp32;
  };
  check.numerics = {.gemm1_out = precision("gemm1_out"),
                    .act_out = precision("act_out"),
                    .pair_out = precision("pair_out"),
                    .weight_on_input = read_word<WeightOnInput>(numerics.at("weight_on_input"),
                                                                weight_on_input_words, "place"),
                    .accumulate = read_word<Accumulate>(numerics.at("accumulate"), accumulate_words,
                                                        "accumulation"),
                    .weights = precision_or_fp32("weights"),
                    .gemm2_out = precision_or_fp32("gemm2_out")};
  check.checked = {.tokens = top.at("checked").at("tokens").integer(0, any_count),
                   .rows = top.at("checked").at("rows").integer(0, any_count)};
  refuse_contradictions(top.at("checked"), check.checked);
  return check;
}

Measured read_measured(const JsonCursor& top) {
  for (const char* key : {"reason", "absent_backends"}) {
    if (const auto why = top.find(key))
      why->fail("a reason in a case that is ok", "only a case that is not ok has one");
  }
  Measured measured;
  measured.latency = read_latency(top.at("latency_us"));
  measured.check = read_check(top);
  measured.tflops = top.at("tflops").number(0, infinity);
  measured.gbytes_per_s = top.at("gbytes_per_s").number(0, infinity);
  const auto roofline = top.at("roofline");
  measured.roofline = {
      .floor_us = roofline.at("floor_us").number(0, infinity),
      .floor_with_intermediates_us = roofline.at("floor_with_intermediates_us").number(0, infinity),
      .fraction = roofline.at("fraction").number(0, infinity)};
  measured.rounds = top.at("sampling").at("rounds").integer(0, any_count);
  measured.extrapolated = top.at("sampling").at("extrapolated").boolean();
  if (const auto stages = top.find("stages_us")) {
    for (const auto& [stage, us] : stages->members())
      measured.stages_us[stage] = us.number(0, infinity);
  }
  if (const auto telemetry = top.find("telemetry")) measured.telemetry = telemetry->json();
  measured.unstable = top.at("unstable").boolean();
  measured.suspect = top.at("suspect").boolean();
  measured.suspect_reason = string_or_empty(top, "suspect_reason");
  return measured;
}

Unmeasured read_unmeasured(const JsonCursor& top, Status status) {
  if (const auto latency = top.find("latency_us")) {
    latency->fail("a latency in a case that is " + std::string(to_string(status)),
                  "only an ok case has a latency");
  }
  for (const char* key : {"tflops", "gbytes_per_s", "roofline", "sampling", "stages_us",
                          "telemetry", "unstable", "suspect", "suspect_reason"}) {
    if (const auto measured = top.find(key)) {
      measured->fail("a measurement in a case that is " + std::string(to_string(status)),
                     "only an ok case was measured");
    }
  }
  Unmeasured unmeasured{.status = status, .reason = top.at("reason").string()};
  if (unmeasured.reason.empty())
    top.at("reason").fail("an empty reason", "say why the case is not ok");
  if (const auto absent = top.find("absent_backends"))
    unmeasured.absent_backends = read_strings(*absent);
  if (top.find("error")) unmeasured.check = read_check(top);
  return unmeasured;
}

}  // namespace

CaseRecord case_from_json(const Json& json, const std::string& where) {
  const JsonCursor top(json, where);
  CaseRecord record;
  record.coordinates = read_coordinates(top);
  record.config = read_config(top.at("config"));
  const auto id = top.at("id");
  if (id.string() != record.id()) {
    id.fail("the id " + in_quotes(id.string()) + " does not belong to the case's coordinates",
            "they spell " + in_quotes(record.id()));
  }
  record.backend = string_or_empty(top, "executed_backend");
  record.seed = top.at("seed").unsigned_integer();
  const auto status = read_word<Status>(top.at("status"), status_words, "status");
  if (status == Status::ok) {
    record.outcome = read_measured(top);
  } else {
    record.outcome = read_unmeasured(top, status);
  }
  record.device = top.at("device").string();
  record.repro = top.at("repro").string();
  if (const auto attempts = top.find("attempts")) record.attempts = read_strings(*attempts);
  record.unknown = beyond(json, case_to_json(record));
  return record;
}

}  // namespace moegauge
