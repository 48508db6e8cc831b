// Two records of one case, from two results: whether they may be compared, what changed between
// them, and the logarithms of their latencies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/judge/statistics.h"
#include "harness/result/record.h"

namespace moegauge {

// A condition that differs so that the latencies and errors of the two mean different things.
struct Mismatch {
  std::string what = {};  // "device"
  std::string now = {}, then = {};
  std::string remedy = {};  // what to do next
};

// Both are ok. None: they may be compared.
std::optional<Mismatch> mismatch(const CaseRecord& now, const CaseRecord& then);

// What differs without forbidding a comparison, because it is what a change to a kernel does: one
// phrase each. Both are ok.
std::vector<std::string> changes(const CaseRecord& now, const CaseRecord& then);

// "timeout (60 s passed)"; empty for a case that is ok.
std::string why_not_ok(const CaseRecord& record);

// Fewer rounds say too little: not even their whole range covers the median with 95%.
inline constexpr std::size_t least_rounds = 6;
// ln of the median with its standard error: from the rounds' means of the raw samples
// (statistics.h), or from the summary's interval, taken for one of 95%, where none were kept. None
// for fewer than least_rounds, or any that is not positive.
std::optional<LogEstimate> log_latency(const LatencySummary& latency);

}  // namespace moegauge
