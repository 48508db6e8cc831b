// The parts of a result that Google Benchmark's own tools read.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// Its context keys for this machine, now.
nlohmann::ordered_json machine_context();
bool is_machine_context_key(std::string_view key);

// Rows of one ok case as its console and JSON reporters shape them: one `iteration` per sample,
// then the aggregates mean, median, stddev, cv. Times in ns. cpu_time repeats real_time: one clock
// is measured (the device's own on accelerators), and compare.py reads both fields.
std::vector<nlohmann::ordered_json> benchmark_rows(const CaseRecord& record,
                                                   std::int64_t family_index);

}  // namespace moegauge
