// Numbers of a case that cannot all be true, whoever wrote them: a file that was edited by hand or
// by another tool must not be judged as if it had been measured. Each throws InputError at the
// number.
#pragma once

#include "harness/json/cursor.h"
#include "harness/result/record.h"

namespace moegauge {

// min <= p10 <= median <= p90 <= max, ci_low <= median <= ci_high, the mean and all samples between
// min and max.
void refuse_contradictions(const JsonCursor& cursor, const LatencySummary& latency);
// Errors that are no size of anything, a cosine or fraction beyond 1.
void refuse_contradictions(const JsonCursor& cursor, const ErrorMetrics& metrics);
void refuse_contradictions(const JsonCursor& cursor, const Checked& checked);
void refuse_contradictions(const JsonCursor& cursor, const Comparison& comparison);

}  // namespace moegauge
