// From raw rows to the numbers of a record.
#pragma once

#include <span>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// Samples in microseconds, kept as they came. The median is that of the rounds' means
// (statistics.h) with its distribution-free interval at kSequentialConfidence; everything else is
// of the rows: p10 and p90 interpolate linearly between order statistics (Hyndman and Fan 1996,
// type 7). Requires at least one sample.
LatencySummary summarize(std::vector<double> samples_us);

// Ratio of a to b where rows were measured in interleaved rounds, two rows of each per round: the
// median over rounds of (a1 + a2) / (b1 + b2), with the same interval. `a` and `b`
// have the same even number of samples.
struct PairedRatio {
  double ratio = 1, low = 1, high = 1;
  std::int64_t rounds = 0;
};
PairedRatio paired_ratio(std::span<const double> a, std::span<const double> b);

// Every pair of ok cases of one point, in the order of `cases`: a before b. Cases of one point were
// measured together or not at all (harness/worker), so equal sample counts mean shared rounds.
std::vector<Comparison> compare_rivals(std::span<const CaseRecord> cases);

}  // namespace moegauge
