// A result as text for people: readable at 100 columns.
#pragma once

#include <string>

#include "harness/result/record.h"

namespace moegauge {

// Per layer, scheme and backend a line per batch size: latency of default and tuned, their ratio
// with its confidence interval, the three errors, the fraction of the floor; then every case that
// is not ok, with its reason.
std::string render_table(const Result& result);

}  // namespace moegauge
