// The parts of a result that Google Benchmark's own tools read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// Its context keys for this machine, now.
nlohmann::ordered_json machine_context();
bool is_machine_context_key(std::string_view key);

// Its tools print and rank every row, and a call of a microsecond has hundreds of samples. Odd, so
// that the middle one is a row, and more than the 9 below which its rank test warns.
inline constexpr std::size_t max_benchmark_rows = 15;

// Rows of one ok case as its console and JSON reporters shape them: `iteration` rows of the
// samples, then the aggregates mean, median, stddev, cv of all samples. Times in ns. cpu_time
// repeats real_time: one clock is measured (the device's own on accelerators), and compare.py reads
// both fields. Of more than max_benchmark_rows samples the rows are so many order statistics,
// evenly spaced in rank, the middle one among them, in the order measured; all samples are in
// `cases`.
std::vector<nlohmann::ordered_json> benchmark_rows(const CaseRecord& record,
                                                   std::int64_t family_index);

}  // namespace moegauge
