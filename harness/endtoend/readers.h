// What other tools wrote and people pasted, as rows. Each throws InputError with the file and line;
// `where` is the file's name. Rows have all of their source but the file's hash.
#pragma once

#include <string>
#include <vector>

#include "harness/result/end_to_end.h"

namespace moegauge {

// What people paste: "Serving Benchmark Result" blocks, "Throughput:" lines, progress lines of a
// run, tables of lm-evaluation-harness, tables of a number per input-output length, parallelism or
// concurrency with a column per variant. Lines that are none of these are passed over; throws
// where none is any, and where one is begun and cannot be read.
std::vector<EndToEndRow> read_pasted(const std::string& text, const std::string& where);

// Result files of lm-evaluation-harness, and of vLLM's bench serve, throughput and latency.
std::vector<EndToEndRow> read_tool_json(const std::string& text, const std::string& where);

// A line of JSON each: lm-evaluation-harness's --log_samples files, a question a line, whose task
// is in the file's name; or what vLLM's bench serve --append-result wrote, a run a line.
inline constexpr const char* samples_tool = "lm-evaluation-harness --log_samples";
std::vector<EndToEndRow> read_json_lines(const std::string& text, const std::string& where);

}  // namespace moegauge
