// What a kernel change does to a whole serving engine: latency and throughput of serving, and
// scores of tasks. Rows of a result file's `end_to_end` list, beside the cases of layers.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/json/cursor.h"

namespace moegauge {

// Where a row's numbers stand: whoever doubts one finds it again.
struct EndToEndSource {
  std::string file = {};
  std::vector<std::int64_t> lines = {};  // from 1, in the order of the file; of pasted text
  std::string pointer = {};              // of a JSON file
  std::string sha256 = {};               // of the file
  std::string tool = {};                 // that wrote it, as far as its form tells

  // "file:12", "file:12,30", "file: /pointer"
  std::string text() const;
};

// Answers to single questions, where there are logs of them: two runs of the same questions can
// then be compared question by question.
struct Questions {
  std::vector<std::int64_t> right = {}, wrong = {};  // ids, ascending, none in both
  std::string sha256 = {};                           // of the questions; runs of others differ
};

struct EndToEndRow {
  std::string op = {};     // serve or eval
  std::string model = {};  // as the source names it; empty where it does not
  // What the numbers are of. serve: input_output, parallelism, concurrency, request_rate. eval:
  // task, metric, filter, n_shot, version. Either: variant, where one source compares several.
  std::map<std::string, std::string> labels = {};
  // serve: requests_per_s, input_, output_ and total_tokens_per_s, either with _per_gpu, and
  // ttft_ms, tpot_ms, itl_ms, e2e_ms each with .mean, .median, .p99, .std; what was served:
  // requests, failed, input_tokens, output_tokens, duration_s, gpus. eval: value, stderr, samples.
  std::map<std::string, double> numbers = {};
  bool lower_is_better = false;  // of an eval's value
  std::optional<Questions> questions = {};
  EndToEndSource source = {};
  nlohmann::ordered_json unknown = {};  // fields of the source that mean nothing here
  nlohmann::ordered_json newer = {};    // fields of a newer version of this format

  // op, model and labels but for `variant`: what two rows must share to be compared.
  std::string point() const;
  std::optional<double> number(const std::string& name) const;
  std::string variant() const;  // empty where there is none
};

nlohmann::ordered_json to_json(const EndToEndRow& row);
// Throws InputError at whatever cannot be.
EndToEndRow end_to_end_from_json(const JsonCursor& json);

}  // namespace moegauge
