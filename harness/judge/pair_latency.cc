// Latency judged by fresh pairs of processes measured in turn: what drifts is in both halves of a
// pair, and chance that let a case through before has no part in them.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"
#include "harness/statistics/moderated.h"
#include "harness/statistics/robust.h"
#include "harness/statistics/two_stage.h"

namespace moegauge {
namespace {

// Of one process: a pair's difference has twice its variance.
Variance of_one_process(const CaseEvidence& evidence) {
  Variance variance = robust_location(evidence.pairs).variance;
  variance.value /= 2;
  return variance;
}

std::string numbers_of_pairs(const LatencyJudgement& j) {
  return format_us(j.result_us) + " is " + format_ratio(j.ratio) + " the baseline's " +
         format_us(j.baseline_us) + " (interval " + format_ratio(j.low) + " to " +
         format_ratio(j.high) + "; " + std::to_string(j.result_processes) +
         " pairs, whose processes differ by " + format_percent(j.between_processes) + ")";
}

Finding finding_of_pairs(const LatencyJudgement& j, const LatencyRule& rule,
                         std::optional<Direction> found, bool controls) {
  const std::string numbers = numbers_of_pairs(j);
  const double slower_us = j.result_us - j.baseline_us;
  const bool counts =
      std::max(j.ratio, 1 / j.ratio) >= rule.floor_ratio && std::abs(slower_us) >= rule.floor_us;
  if (found == Direction::slower && counts) {
    return {Verdict::fail, "latency", "slower: " + numbers, "find what differs between the builds"};
  }
  if (found == Direction::faster && counts) {
    return {Verdict::improved, "latency", "faster: " + numbers,
            "record a new baseline, so that the gain is kept"};
  }
  // A control may not be faster either.
  const double open = controls ? std::max(j.high, 1 / j.low) : j.high;
  if (open > j.limit && j.baseline_us * (open - 1) >= rule.floor_us) {
    return {Verdict::inconclusive, "latency",
            "cannot tell: " + numbers + "; only " + format_ratio(j.smallest_failing_ratio) +
                " or more would have failed: measure " + std::to_string(j.pairs_needed) +
                " pairs or more (--pairs)"};
  }
  return {Verdict::pass, "latency", numbers + ": nothing to do"};
}

Change outcome_of_pairs(const LatencyJudgement& j, Verdict verdict) {
  if (verdict == Verdict::fail) return Change::slower;
  if (verdict == Verdict::improved) return Change::faster;
  const bool within = j.low >= 1 / j.limit && j.high <= j.limit;
  return within ? Change::same : Change::inconclusive;
}

// A process may slow all of its cases alike, and then their spreads are one spread seen many times:
// the cases together know as much of it as one of them does, and of few pairs nothing is borrowed.
double most_prior_of(std::span<const ProcessCase> cases) {
  std::size_t fewest = SIZE_MAX;
  for (const ProcessCase& c : cases) fewest = std::min(fewest, c.evidence->pairs.size());
  if (cases.empty() || fewest < least_for_ranks) return 0;
  return static_cast<double>(fewest - 1);
}

}  // namespace

std::vector<LatencyVerdict> judge_pairs(std::span<const ProcessCase> cases, const Policy& policy) {
  // Smaller changes than a case's own floor are none: that is looked at here, case by case.
  const Aim planning{.false_alarms = policy.false_alarms, .least = 0};
  Aim aim = planning;
  aim.most_prior = most_prior_of(cases);
  std::vector<PairedCase> candidates;
  std::vector<Variance> variances;
  for (const ProcessCase& c : cases) {
    candidates.push_back({.pairs = c.evidence->pairs, .asked = Direction::either});
    variances.push_back(of_one_process(*c.evidence));
  }
  const std::optional<Variance> prior = fit_variance_prior(variances);
  const std::vector<Confirmation> confirmed = confirm(candidates, prior, aim, policy.confidence);

  std::vector<LatencyVerdict> verdicts;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ProcessCase& c = cases[i];
    const Confirmation& found = confirmed[i];
    const std::size_t pairs = c.evidence->pairs.size();
    const double baseline = robust_location(c.evidence->baseline).value;
    const double floor = std::log(c.rule->floor_ratio);
    const Variance between = moderate(variances[i], prior, aim.most_prior);
    LatencyJudgement j{.result_us = std::exp(baseline + found.value),
                       .baseline_us = std::exp(baseline),
                       .ratio = std::exp(found.value),
                       .low = std::exp(found.low),
                       .high = std::exp(found.high),
                       .limit = c.rule->ratio_limit,
                       .smallest_failing_ratio = std::exp(std::max(floor, found.smallest)),
                       .between_runs = found.standard_error,
                       .result_processes = pairs,
                       .baseline_processes = pairs,
                       .between_processes = std::sqrt(between.value),
                       .spread_from = "the pairs measured",
                       .limited_by = found.smallest > floor ? "noise" : "the policy's floor",
                       .adjusted_p = found.adjusted_p};
    j.pairs_needed = std::max(pairs_needed(between, cases.size(), planning), pairs + least_pairs);
    Finding finding = finding_of_pairs(j, *c.rule, found.found, policy.controls);
    j.change = outcome_of_pairs(j, finding.verdict);
    verdicts.push_back({.finding = std::move(finding), .numbers = std::move(j)});
  }
  return verdicts;
}

}  // namespace moegauge
