#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "harness/endtoend/json_rows.h"
#include "harness/endtoend/readers.h"
#include "harness/endtoend/serving_names.h"
#include "harness/json/document.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;
constexpr double unbounded = std::numeric_limits<double>::max();

struct KnownKey {
  const char* key;
  const char* name;
};
// vLLM's `bench serve`; times are read by the form of their keys.
constexpr std::array<KnownKey, 8> serve_keys = {{{"request_throughput", "requests_per_s"},
                                                 {"output_throughput", "output_tokens_per_s"},
                                                 {"total_token_throughput", "total_tokens_per_s"},
                                                 {"duration", "duration_s"},
                                                 {"completed", "requests"},
                                                 {"failed", "failed"},
                                                 {"total_input_tokens", "input_tokens"},
                                                 {"total_output_tokens", "output_tokens"}}};
constexpr std::array<KnownKey, 4> throughput_keys = {{{"requests_per_second", "requests_per_s"},
                                                      {"tokens_per_second", "total_tokens_per_s"},
                                                      {"elapsed_time", "duration_s"},
                                                      {"num_requests", "requests"}}};

// "mean_ttft_ms", "p99_e2el_ms"
std::string timing_of_key(const std::string& key) {
  const auto first = key.find('_'), last = key.rfind('_');
  if (first == std::string::npos || first == last || key.substr(last) != "_ms") return "";
  return timing_name(key.substr(0, first), key.substr(first + 1, last - first - 1));
}

// Lists of a number per request would make a result of megabytes.
Json kept(const JsonCursor& value) {
  if (!value.is_array()) return value.json();
  return "a list of " + std::to_string(value.json().size()) + ", not kept";
}

template <std::size_t N>
std::string known_name(const std::array<KnownKey, N>& keys, const std::string& key) {
  const auto found =
      std::ranges::find_if(keys, [&](const KnownKey& known) { return known.key == key; });
  return found == keys.end() ? "" : found->name;
}

// A number as a label, alike whether a tool wrote 3 or 3.0; text as it is.
std::string label_text(const JsonCursor& value) {
  if (value.is_string()) return value.string();
  if (!value.is_number()) return value.json().dump();
  const double number = value.number(-unbounded, unbounded);
  const bool whole = std::floor(number) == number && std::abs(number) < 1e15;
  return whole ? std::to_string(static_cast<std::int64_t>(number)) : value.json().dump();
}

void put_serve_field(EndToEndRow& row, const std::string& key, const JsonCursor& value) {
  std::string name = known_name(serve_keys, key);
  if (name.empty()) name = timing_of_key(key);
  if (key == "model_id") {
    row.model = value.string();
  } else if (key == "max_concurrency" && !value.is_null()) {
    row.labels["concurrency"] = label_text(value);
  } else if (key == "request_rate" && value.is_number()) {  // "inf": as fast as they go
    row.labels["request_rate"] = label_text(value);
  } else if (!name.empty() && !value.is_null()) {
    row.numbers[name] = value.number(0, unbounded);
  } else {
    row.unknown[key] = kept(value);
  }
}

EndToEndRow throughput_row(const JsonCursor& top) {
  EndToEndRow row{.op = "serve", .source = {.tool = "vllm bench throughput"}};
  for (const auto& [key, value] : top.members()) {
    const std::string name = known_name(throughput_keys, key);
    if (name.empty() || value.is_null()) {
      row.unknown[key] = kept(value);
    } else {
      row.numbers[name] = value.number(0, unbounded);
    }
  }
  return row;
}

// Of a whole batch, in seconds.
EndToEndRow latency_row(const JsonCursor& top) {
  EndToEndRow row{.op = "serve", .source = {.tool = "vllm bench latency"}};
  for (const auto& [key, value] : top.members()) {
    if (value.is_null()) {
      row.unknown[key] = nullptr;
    } else if (key == "avg_latency") {
      row.numbers["e2e_ms.mean"] = 1000 * value.number(0, unbounded);
    } else if (key == "std_latency") {
      row.numbers["e2e_ms.std"] = 1000 * value.number(0, unbounded);
    } else if (key == "percentiles") {
      for (const auto& [percentile, seconds] : value.members()) {
        if (seconds.is_null()) continue;
        const std::string name = percentile == "50" ? "median" : "p" + percentile;
        row.numbers["e2e_ms." + name] = 1000 * seconds.number(0, unbounded);
      }
    } else {
      row.unknown[key] = kept(value);
    }
  }
  return row;
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
  const auto of_task = [&](const char* key) -> std::optional<JsonCursor> {
    const auto all = top.find(key);
    return all && all->is_object() ? all->find(task) : std::nullopt;
  };
  if (const auto shots = of_task("n-shot")) row.labels["n_shot"] = label_text(*shots);
  if (const auto version = of_task("versions")) row.labels["version"] = label_text(*version);
  if (const auto samples = of_task("n-samples"); samples && samples->is_object()) {
    if (const auto effective = samples->find("effective"))
      row.numbers["samples"] = effective->number(0, unbounded);
  }
  if (const auto directions = of_task("higher_is_better"); directions && directions->is_object()) {
    const auto higher = directions->find(row.labels.at("metric"));
    row.lower_is_better = higher && higher->json().is_boolean() && !higher->boolean();
  }
  for (const char* key : {"configs", "task_hashes"})
    if (const auto fact = of_task(key)) row.unknown[key] = fact->json();
}

// What is true of a whole file, but for what is in labels and numbers, and for a description of
// the machine's software that runs to pages.
void put_file_facts(const JsonCursor& top, EndToEndRow& row) {
  static constexpr std::array elsewhere = {
      "results", "group_subtasks",   "groups",    "configs",    "task_hashes",     "versions",
      "n-shot",  "higher_is_better", "n-samples", "model_name", "pretty_env_info", "samples"};
  for (const auto& [key, value] : top.members())
    if (std::ranges::find(elsewhere, key) == elsewhere.end()) row.unknown[key] = kept(value);
}

bool is_score(const std::string& key, const JsonCursor& value) {
  return value.is_number() && key.find("_stderr") == std::string::npos && key != "sample_len" &&
         key != "samples" && key != "sample_count";
}

EndToEndRow eval_row(const JsonCursor& top, const std::string& task, const JsonCursor& of_task,
                     const std::string& key, const JsonCursor& value) {
  EndToEndRow row{.op = "eval",
                  .model = model_of(top),
                  .source = {.pointer = value.pointer(), .tool = "lm-evaluation-harness"}};
  const auto comma = key.find(',');  // "exact_match,strict-match": metric and filter
  row.labels = {{"task", task},
                {"metric", key.substr(0, comma)},
                {"filter", comma == std::string::npos ? "none" : key.substr(comma + 1)}};
  row.numbers["value"] = value.number(-unbounded, unbounded);
  // "N/A": there is none, which is not zero.
  const auto error = of_task.find(stderr_key(key));
  if (error && error->is_number()) row.numbers["stderr"] = error->number(0, unbounded);
  put_task_facts(top, task, row);
  put_file_facts(top, row);
  return row;
}

std::vector<EndToEndRow> lm_eval_rows(const JsonCursor& top) {
  std::vector<EndToEndRow> rows;
  const JsonCursor results = top.at("results");
  for (const auto& [task, of_task] : results.members()) {
    for (const auto& [key, value] : of_task.members())
      if (is_score(key, value)) rows.push_back(eval_row(top, task, of_task, key, value));
  }
  if (rows.empty()) results.fail("no task in it has a score", "a number per metric");
  return rows;
}

}  // namespace

std::string with_null_for_no_number(const std::string& text) {
  std::string json;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      json += text[i++];
      if (i < text.size()) json += text[i];
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    std::size_t length = 0;
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
      if (!in_string && std::string_view(text).substr(i, word.size()) == word) length = word.size();
    }
    if (length == 0) {
      json += text[i];
    } else {
      json += "null";
      i += length - 1;
    }
  }
  return json;
}

bool is_serve_result(const JsonCursor& top) {
  return top.is_object() && top.find("request_throughput").has_value();
}

EndToEndRow serve_row(const JsonCursor& top) {
  EndToEndRow row{.op = "serve", .source = {.tool = "vllm bench serve"}};
  for (const auto& [key, value] : top.members()) put_serve_field(row, key, value);
  return row;
}

std::vector<EndToEndRow> read_tool_json(const std::string& text, const std::string& where) {
  const JsonDocument document = JsonDocument::parse(with_null_for_no_number(text), where);
  const JsonCursor top(document);
  std::vector<EndToEndRow> rows;
  if (is_serve_result(top)) {
    rows = {serve_row(top)};
  } else if (top.is_object() && top.find("results")) {
    rows = lm_eval_rows(top);
  } else if (top.is_object() && top.find("requests_per_second")) {
    rows = {throughput_row(top)};
  } else if (top.is_object() && top.find("avg_latency")) {
    rows = {latency_row(top)};
  } else {
    top.fail("neither a result of lm-evaluation-harness nor of vLLM's bench",
             "results, request_throughput, requests_per_second or avg_latency at its top");
  }
  for (EndToEndRow& row : rows) row.source.file = where;
  return rows;
}

}  // namespace moegauge
