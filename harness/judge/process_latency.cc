// Latency judged by processes: all cases of a run together, because many are tried at once.
#include <algorithm>
#include <cmath>

#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"
#include "harness/statistics/distributions.h"
#include "harness/statistics/multiple.h"
#include "harness/statistics/two_stage.h"

namespace moegauge {
namespace {

// One outlier among fewer decides, so that a change must be beyond the limit for sure.
constexpr std::size_t least_for_a_change = 3;

// Processes of a side after which a spread that is known from them alone can be planned with: below
// 3 degrees of freedom the variance that it is an estimate of has no mean.
constexpr std::size_t least_for_a_plan = 4;

// The prior of the run's cases; of one that stands alone, what it shows itself, where that is
// enough.
Variance spread_to_plan_with(const Screening& screening, const Screened& s) {
  const Variance own{s.between * s.between, s.degrees_of_freedom};
  const Variance spread = screening.prior.value_or(own);
  if (spread.degrees_of_freedom > 0) return spread;
  return own.degrees_of_freedom + 1 >= double{least_for_a_plan} ? own : Variance{own.value, 0};
}

std::string processes(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes");
}

std::string numbers_of_processes(const LatencyJudgement& j) {
  return format_us(j.result_us) + " is " + format_ratio(j.ratio) + " the baseline's " +
         format_us(j.baseline_us) + " (interval " + format_ratio(j.low) + " to " +
         format_ratio(j.high) + "; " + processes(j.result_processes) + " against " +
         std::to_string(j.baseline_processes) + ", which differ by " +
         format_percent(j.between_processes) + ")";
}

std::string how_to_confirm(const LatencyJudgement& j) {
  if (j.pairs_needed == 0) {
    return "measure the case in " + std::to_string(least_for_a_plan) +
           " or more processes on each side, since so few do not show how much they differ";
  }
  return "measure the case in " + std::to_string(j.pairs_needed) +
         " fresh pairs with moegauge compare --exec-a BASELINE --exec-b NOW SUITE";
}

Finding found(const LatencyJudgement& j, const LatencyRule& rule, bool significant) {
  const std::string numbers = numbers_of_processes(j);
  const bool few = j.result_processes < least_for_a_change;
  const double slower_us = j.result_us - j.baseline_us;
  const bool slower = few ? j.low > j.limit : significant && j.ratio >= rule.floor_ratio;
  const bool faster = few ? j.high < 1 / j.limit : significant && j.ratio <= 1 / rule.floor_ratio;
  if (slower && slower_us >= rule.floor_us) {
    return {Verdict::fail, "latency", "slower: " + numbers,
            "find the cause, or record a new baseline on purpose"};
  }
  if (faster && -slower_us >= rule.floor_us) {
    return {Verdict::improved, "latency", "faster: " + numbers,
            "record a new baseline, so that the gain is kept"};
  }
  if (j.high > j.limit && j.baseline_us * (j.high - 1) >= rule.floor_us) {
    return {Verdict::inconclusive, "latency",
            "cannot tell: " + numbers + "; only " + format_ratio(j.smallest_failing_ratio) +
                " or more would have failed: " + how_to_confirm(j)};
  }
  return {Verdict::pass, "latency", numbers + ": nothing to do"};
}

Change change_of(const LatencyJudgement& j, Verdict verdict) {
  if (verdict == Verdict::fail) return Change::slower;
  if (verdict == Verdict::improved) return Change::faster;
  const bool within = j.low >= 1 / j.limit && j.high <= j.limit;
  return within && j.result_processes > 1 ? Change::same : Change::inconclusive;
}

std::string where_spread_is_from(const ProcessCase& c) {
  const std::size_t sides = std::max(c.evidence->now.size(), c.evidence->baseline.size());
  const std::string own = sides > 1 ? "the processes given" : "";
  const std::string& known = c.evidence->known_from;
  return own.empty() || known.empty() ? own + known : own + ", " + known;
}

}  // namespace

bool judged_by_processes(const CaseEvidence& e) {
  if (e.now.empty() || e.baseline.empty()) return false;
  return e.now.size() > 1 || e.baseline.size() > 1 || e.known.degrees_of_freedom > 0;
}

std::vector<LatencyVerdict> judge_latencies(std::span<const ProcessCase> cases,
                                            const Policy& policy) {
  const Aim aim{.false_alarms = policy.false_alarms};
  std::vector<CaseSamples> samples;
  for (const ProcessCase& c : cases) {
    samples.push_back({c.evidence->now, c.evidence->baseline, c.evidence->known});
  }
  const Screening screening = screen(samples, aim, policy.confidence);
  std::vector<double> p;
  for (const Screened& s : screening.cases) {
    p.push_back(std::min(1.0, 2 * std::min(s.p_slower(), s.p_faster())));
  }
  const std::vector<double> adjusted = benjamini_hochberg(p);
  const auto rejected = static_cast<double>(
      std::ranges::count_if(adjusted, [&](double a) { return a <= policy.false_alarms; }));
  const double level =
      policy.false_alarms / static_cast<double>(std::max<std::size_t>(1, p.size()));
  const auto candidates = static_cast<std::size_t>(
      std::ranges::count_if(screening.cases, [](const Screened& s) { return s.may_be_slower; }));

  std::vector<LatencyVerdict> verdicts;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ProcessCase& c = cases[i];
    const Screened& s = screening.cases[i];
    const bool significant = adjusted[i] <= policy.false_alarms;
    // The level at which this case was, or would have been, found beside the others.
    const double own_level = level * (significant ? std::max(1.0, rejected) : rejected + 1) / 2;
    const double noise =
        student_upper_quantile(std::min(own_level, 0.5), s.degrees_of_freedom) * s.standard_error;
    const double floor = std::log(c.rule->floor_ratio);
    const bool few = c.evidence->now.size() < least_for_a_change;
    const double limit = std::log(c.rule->ratio_limit);
    const double smallest = few ? limit + (s.value - s.low) : std::max(floor, noise);
    LatencyJudgement j{.result_us = std::exp(s.value + s.baseline),
                       .baseline_us = std::exp(s.baseline),
                       .ratio = std::exp(s.value),
                       .low = std::exp(s.low),
                       .high = std::exp(s.high),
                       .limit = c.rule->ratio_limit,
                       .smallest_failing_ratio = std::exp(smallest),
                       .between_runs = s.standard_error,
                       .result_processes = c.evidence->now.size(),
                       .baseline_processes = c.evidence->baseline.size(),
                       .between_processes = s.between,
                       .spread_from = where_spread_is_from(c),
                       .limited_by = few             ? "the policy's ratio limit, and noise"
                                     : noise > floor ? "noise"
                                                     : "the policy's floor",
                       .adjusted_p = adjusted[i]};
    j.pairs_needed = pairs_needed(spread_to_plan_with(screening, s), candidates, aim);
    Finding finding = found(j, *c.rule, significant);
    j.change = change_of(j, finding.verdict);
    verdicts.push_back({.finding = std::move(finding), .numbers = std::move(j)});
  }
  return verdicts;
}

}  // namespace moegauge
