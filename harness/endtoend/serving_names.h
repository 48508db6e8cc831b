// How numbers of serving are called in rows, whatever a source calls them.
#pragma once

#include <optional>
#include <string>

namespace moegauge {

// "Mean", "Median", "P99", "mean", "std" of "TTFT", "tpot", "E2EL", ... as "ttft_ms.mean"; empty
// where it is none of these.
std::string timing_name(const std::string& statistic, const std::string& time);

// The number that a table's title or a column's head names: "P99 TTFT (ms)" is ttft_ms.p99, "TPOT"
// tpot_ms.mean, "Output tok/s/GPU" output_tokens_per_s_per_gpu. None where it names no number, two,
// or one that rows do not have.
std::optional<std::string> number_named_in(const std::string& text);
// Whether a text is about what was measured, well enough named or not, as "Latency (ms)" or "P99".
bool speaks_of_a_number(const std::string& text);

}  // namespace moegauge
