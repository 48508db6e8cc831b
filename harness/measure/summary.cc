#include "harness/measure/summary.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "harness/judge/statistics.h"

namespace moegauge {
namespace {

double quantile_of_sorted(const std::vector<double>& sorted, double p) {
  const double position = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

}  // namespace

LatencySummary summarize(std::vector<double> samples_us) {
  assert(!samples_us.empty());
  std::vector<double> sorted = samples_us;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<double> means = round_means(samples_us);
  const MedianInterval interval = median_interval(means, kSequentialConfidence);
  LatencySummary summary{.median = median(means),
                         .ci_low = interval.low,
                         .ci_high = interval.high,
                         .p10 = quantile_of_sorted(sorted, 0.1),
                         .p90 = quantile_of_sorted(sorted, 0.9),
                         .min = sorted.front(),
                         .max = sorted.back(),
                         .mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) /
                                 static_cast<double>(sorted.size()),
                         .samples = {}};
  summary.samples = std::move(samples_us);
  return summary;
}

PairedRatio paired_ratio(std::span<const double> a, std::span<const double> b) {
  assert(a.size() == b.size() && a.size() >= 2);
  std::vector<double> ratios;
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) {
    ratios.push_back((a[i] + a[i + 1]) / (b[i] + b[i + 1]));
  }
  const MedianInterval interval = median_interval(ratios, kSequentialConfidence);
  return {median(ratios), interval.low, interval.high, static_cast<std::int64_t>(ratios.size())};
}

std::vector<Comparison> compare_rivals(std::span<const CaseRecord> cases) {
  std::map<std::string, std::vector<const CaseRecord*>> rivals_so_far;
  std::vector<Comparison> comparisons;
  for (const CaseRecord& record : cases) {
    if (!record.measured()) continue;
    const std::string point = point_id(record.coordinates);
    auto& rivals = rivals_so_far[point];
    const auto& samples = record.measured()->latency.samples;
    for (const CaseRecord* rival : rivals) {
      const auto& earlier = rival->measured()->latency.samples;
      if (earlier.size() != samples.size() || samples.size() < 2) continue;
      // A call that takes no time (0 tokens) has no ratio.
      if (rival->measured()->latency.min <= 0 || record.measured()->latency.min <= 0) continue;
      const PairedRatio paired = paired_ratio(earlier, samples);
      comparisons.push_back(
          {point, rival->id(), record.id(), paired.ratio, paired.low, paired.high, paired.rounds});
    }
    rivals.push_back(&record);
  }
  return comparisons;
}

}  // namespace moegauge
