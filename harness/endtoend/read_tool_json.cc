#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "harness/endtoend/end_to_end.h"
#include "harness/json/cursor.h"
#include "harness/json/document.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

struct KnownKey {
  const char* key;
  const char* name;
};
// vLLM's `bench serve` result. `max_concurrency` is a label.
constexpr std::array<KnownKey, 17> serve_keys = {{{"request_throughput", "requests_per_s"},
                                                  {"output_throughput", "output_tokens_per_s"},
                                                  {"total_token_throughput", "total_tokens_per_s"},
                                                  {"duration", "duration_s"},
                                                  {"completed", "requests"},
                                                  {"mean_ttft_ms", "ttft_ms.mean"},
                                                  {"median_ttft_ms", "ttft_ms.median"},
                                                  {"p99_ttft_ms", "ttft_ms.p99"},
                                                  {"mean_tpot_ms", "tpot_ms.mean"},
                                                  {"median_tpot_ms", "tpot_ms.median"},
                                                  {"p99_tpot_ms", "tpot_ms.p99"},
                                                  {"mean_itl_ms", "itl_ms.mean"},
                                                  {"median_itl_ms", "itl_ms.median"},
                                                  {"p99_itl_ms", "itl_ms.p99"},
                                                  {"mean_e2el_ms", "e2e_ms.mean"},
                                                  {"median_e2el_ms", "e2e_ms.median"},
                                                  {"p99_e2el_ms", "e2e_ms.p99"}}};
// `bench throughput` and `bench latency`; seconds become milliseconds below.
constexpr std::array<KnownKey, 3> throughput_keys = {{{"requests_per_second", "requests_per_s"},
                                                      {"tokens_per_second", "total_tokens_per_s"},
                                                      {"elapsed_time", "duration_s"}}};

EndToEndRow flat_row(const JsonCursor& top, std::span<const KnownKey> keys,
                     const std::string& where) {
  EndToEndRow row{.op = "serve", .source = where};
  for (const auto& [key, value] : top.members()) {
    const auto known = std::find_if(keys.begin(), keys.end(),
                                    [&, &k = key](const KnownKey& one) { return one.key == k; });
    if (key == "model_id") {
      row.model = value.string();
    } else if (key == "max_concurrency" && !value.is_null()) {
      row.labels["concurrency"] = value.json().dump();
    } else if (known != keys.end()) {
      row.numbers[known->name] = value.number(0, HUGE_VAL);
    } else if (!value.is_array()) {  // the lists of every request are not kept
      row.unknown[key] = value.json();
    }
  }
  return row;
}

EndToEndRow latency_row(const JsonCursor& top, const std::string& where) {
  EndToEndRow row{.op = "serve", .source = where};
  row.numbers["e2e_ms.mean"] = 1000 * top.at("avg_latency").number(0, HUGE_VAL);
  if (const auto percentiles = top.find("percentiles")) {
    for (const auto& [percentile, value] : percentiles->members()) {
      const std::string name = percentile == "50" ? "median" : "p" + percentile;
      row.numbers["e2e_ms." + name] = 1000 * value.number(0, HUGE_VAL);
    }
  }
  return row;
}

// "exact_match,strict-match" -> metric and filter.
void put_metric(EndToEndRow& row, const std::string& key) {
  const auto comma = key.find(',');
  row.labels["metric"] = key.substr(0, comma);
  row.labels["filter"] = comma == std::string::npos ? "none" : key.substr(comma + 1);
}

std::string stderr_key(const std::string& key) {
  const auto comma = key.find(',');
  return comma == std::string::npos ? key + "_stderr"
                                    : key.substr(0, comma) + "_stderr" + key.substr(comma);
}

std::string model_of(const JsonCursor& top) {
  for (const char* key : {"model_name", "model_source"}) {
    if (const auto name = top.find(key); name && name->is_string()) return name->string();
  }
  return "";
}

void put_task_facts(const JsonCursor& top, const std::string& task, EndToEndRow& row) {
  const auto of_task = [&, task](const char* key) -> std::optional<JsonCursor> {
    const auto all = top.find(key);
    return all && all->is_object() ? all->find(task) : std::nullopt;
  };
  if (const auto shots = of_task("n-shot")) row.labels["n_shot"] = shots->json().dump();
  if (const auto version = of_task("versions")) row.labels["version"] = version->json().dump();
  if (const auto samples = of_task("n-samples")) {
    if (const auto effective = samples->find("effective"))
      row.numbers["samples"] = effective->number(0, HUGE_VAL);
  }
  if (const auto config = top.find("config")) row.unknown["config"] = config->json();
}

std::vector<EndToEndRow> lm_eval_rows(const JsonCursor& top, const std::string& where) {
  std::vector<EndToEndRow> rows;
  for (const auto& [task, numbers] : top.at("results").members()) {
    for (const auto& [key, value] : numbers.members()) {
      if (!value.is_number() || key.find("_stderr") != std::string::npos) continue;
      if (key == "sample_len" || key == "samples") continue;
      EndToEndRow row{
          .op = "eval", .model = model_of(top), .source = where + ": " + value.pointer()};
      row.labels["task"] = task;
      put_metric(row, key);
      row.numbers["value"] = value.number(-HUGE_VAL, HUGE_VAL);
      // "N/A": there is none, which is not zero.
      const auto error = numbers.find(stderr_key(key));
      if (error && error->is_number()) row.numbers["stderr"] = error->number(0, HUGE_VAL);
      put_task_facts(top, task, row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

std::vector<EndToEndRow> read_tool_json(const std::string& text, const std::string& where) {
  const JsonDocument document = JsonDocument::parse(text, where);
  const JsonCursor top(document);
  if (top.is_object()) {
    if (top.find("results")) {
      std::vector<EndToEndRow> rows = lm_eval_rows(top, where);
      if (rows.empty()) top.at("results").fail("no task in it has a score", "a number per metric");
      return rows;
    }
    if (top.find("request_throughput")) return {flat_row(top, serve_keys, where)};
    if (top.find("requests_per_second")) return {flat_row(top, throughput_keys, where)};
    if (top.find("avg_latency")) return {latency_row(top, where)};
  }
  top.fail("neither a result of lm-evaluation-harness nor of vLLM's bench",
           "results, request_throughput, requests_per_second or avg_latency at its top");
}

}  // namespace moegauge
