#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/counterpart.h"
#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"
#include "harness/judge/statistics.h"

namespace moegauge {
namespace {

// What an interval must lie beyond to fail.
double surely(const LatencyRule& rule) { return std::max(rule.ratio_limit, rule.outlier_ratio); }

LatencyJudgement compare(const LogEstimate& result, const LogEstimate& baseline,
                         const LatencyRule& rule, double confidence) {
  // Both sides were one process, and each drew its own deviation.
  const double between = rule.between_runs * std::sqrt(2.0);
  const RatioInterval interval = ratio_interval(result, baseline, confidence, between);
  return {.result_us = std::exp(result.value),
          .baseline_us = std::exp(baseline.value),
          .ratio = interval.ratio,
          .low = interval.low,
          .high = interval.high,
          .limit = rule.ratio_limit,
          .smallest_failing_ratio = surely(rule) * interval.ratio / interval.low,
          .within_runs = std::hypot(result.standard_error, baseline.standard_error),
          .between_runs = between,
          .between_processes = rule.between_runs,
          .spread_from = "assumed by the policy: neither calibration nor history was given",
          .limited_by = "the policy's ratio limit, and noise"};
}

std::string numbers_of(const LatencyJudgement& j) {
  return format_us(j.result_us) + " is " + format_ratio(j.ratio) + " the baseline's " +
         format_us(j.baseline_us) + " (interval " + format_ratio(j.low) + " to " +
         format_ratio(j.high) + ", limit " + format_ratio(j.limit) + ")";
}

Finding finding_from(const LatencyJudgement& j, const LatencyRule& rule) {
  const std::string numbers = numbers_of(j);
  const double floor_us = rule.floor_us;
  const double slower_us = j.result_us - j.baseline_us;
  const double at_most_slower_us = j.baseline_us * (j.high - 1);
  if (j.low > surely(rule) && slower_us >= floor_us) {
    return {Verdict::fail, "latency", "slower: " + numbers,
            "find the cause, or record a new baseline on purpose"};
  }
  if (j.high < 1 / surely(rule) && -slower_us >= floor_us) {
    return {Verdict::improved, "latency", "faster: " + numbers,
            "record a new baseline, so that the gain is kept"};
  }
  if (j.high > j.limit && at_most_slower_us >= floor_us) {
    return {Verdict::inconclusive, "latency",
            "cannot tell: " + numbers + "; only " + format_ratio(j.smallest_failing_ratio) +
                " or more would have failed: measure again on a quieter machine or for longer"};
  }
  return {Verdict::pass, "latency",
          numbers +
              ": not slower by the limit, nothing to do; one process a side sees changes from " +
              format_ratio(j.smallest_failing_ratio) + " on"};
}

// A result is gated against itself: its samples are the baseline's own, and there is no second draw
// of any noise. Where raw samples were not kept nobody can tell.
bool same_measurement(const LatencySummary& a, const LatencySummary& b) {
  return !a.samples.empty() && a.samples == b.samples;
}

}  // namespace

LatencyVerdict judge_latency(const Measured& result, const Measured& baseline,
                             const LatencyRule& rule, double confidence) {
  const std::optional<LogEstimate> a = log_latency(result.latency);
  const std::optional<LogEstimate> b = log_latency(baseline.latency);
  if (!a || !b) {
    return {.finding = {Verdict::inconclusive, "latency",
                        std::string("the ") + (a ? "baseline" : "result") + " holds fewer than " +
                            std::to_string(least_rounds) +
                            " usable rounds of latencies: measure it again"},
            .numbers = std::nullopt};
  }
  LatencyJudgement numbers = compare(*a, *b, rule, confidence);
  // A time below the physical floor is a broken measurement, and no baseline for anything.
  for (const Measured* side : {&result, &baseline}) {
    if (!side->suspect) continue;
    return {.finding = {Verdict::inconclusive, "latency",
                        std::string("the ") + (side == &result ? "result" : "baseline") +
                            "'s latency is suspect (" + side->suspect_reason +
                            "): find out why, then measure it again"},
            .numbers = numbers};
  }
  if (same_measurement(result.latency, baseline.latency)) {
    return {.finding = {Verdict::pass, "latency",
                        format_us(numbers.result_us) +
                            " is the baseline's own measurement, sample by sample: nothing to do"},
            .numbers = numbers};
  }
  Finding finding = finding_from(numbers, rule);
  if (finding.verdict == Verdict::fail) numbers.change = Change::slower;
  if (finding.verdict == Verdict::improved) numbers.change = Change::faster;
  return {.finding = std::move(finding), .numbers = numbers};
}

}  // namespace moegauge
