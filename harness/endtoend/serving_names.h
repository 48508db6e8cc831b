// How numbers of serving are called in rows, whatever a source calls them.
#pragma once

#include <string>

namespace moegauge {

// "Mean", "Median", "P99", "mean", "std" of "TTFT", "tpot", "E2EL", ... as "ttft_ms.mean"; empty
// where it is none of these.
std::string timing_name(const std::string& statistic, const std::string& time);

}  // namespace moegauge
