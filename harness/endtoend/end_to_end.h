// What a kernel change does to a whole serving engine: latency and throughput of serving, and
// scores of tasks. Rows of a result file's `end_to_end` list, beside the cases of layers.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moegauge {

struct EndToEndRow {
  std::string op = {};     // serve or eval
  std::string model = {};  // as the source names it; empty where it does not
  // What the numbers are of. serve: input_output, parallelism, concurrency. eval: task, filter,
  // metric, n_shot, version. Either: variant, where one table compares several.
  std::map<std::string, std::string> labels = {};
  // serve: requests_per_s, output_tokens_per_s, total_tokens_per_s, either with _per_gpu, and
  // ttft_ms, tpot_ms, itl_ms, e2e_ms each with .mean, .median, .p99. eval: value, stderr, samples.
  std::map<std::string, double> numbers = {};
  std::string source = {};              // file and line, or file and JSON key
  nlohmann::ordered_json unknown = {};  // fields of the source that mean nothing here

  // op, model and labels but for `variant`: what two rows must share to be compared.
  std::string point() const;
  std::optional<double> number(const std::string& name) const;
};

nlohmann::ordered_json to_json(const EndToEndRow& row);
// Throws InputError with `where`.
EndToEndRow end_to_end_from_json(const nlohmann::ordered_json& json, const std::string& where);

// What people paste: "Serving Benchmark Result" blocks, "Throughput:" lines, progress lines of a
// run, tables of lm-evaluation-harness, tables of a number per input-output length, parallelism or
// concurrency with a column per variant. Lines that are none of these are passed over; throws
// InputError where none is any.
std::vector<EndToEndRow> read_pasted(const std::string& text, const std::string& where);

// Result files of lm-evaluation-harness, and of vLLM's bench serve, throughput and latency.
std::vector<EndToEndRow> read_tool_json(const std::string& text, const std::string& where);

}  // namespace moegauge
