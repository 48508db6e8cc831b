// Latency judged by processes: all cases of a run together, because many are tried at once.
#include <algorithm>
#include <cmath>
#include <cstdint>

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

// A process may slow all of its cases alike, and then their spreads are one spread seen many times:
// the cases together know as much of it as one of them does.
double prior_shared_by(std::span<const ProcessCase> cases) {
  std::size_t fewest = SIZE_MAX;
  for (const ProcessCase& c : cases) {
    fewest = std::min(fewest, c.evidence->now.size() + c.evidence->baseline.size());
  }
  return fewest == SIZE_MAX || fewest < 2 ? 0 : static_cast<double>(fewest - 2);
}

// The median of the processes without the one that speaks most for the change. At least two.
double median_without_extreme(std::span<const double> values, bool slower) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  sorted.erase(slower ? sorted.end() - 1 : sorted.begin());
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

// The standard error of a median of normal values, in those of their mean: sqrt(pi / 2).
constexpr double of_a_median = 1.2533;

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

// `surely`: significant, and no outlier's doing.
Finding found(const LatencyJudgement& j, const LatencyRule& rule, bool surely) {
  const std::string numbers = numbers_of_processes(j);
  const bool few = j.result_processes < least_for_a_change;
  const double slower_us = j.result_us - j.baseline_us;
  const double limit = std::max(j.limit, rule.outlier_ratio);
  const bool slower = few ? j.low > limit : surely && j.ratio >= rule.floor_ratio;
  const bool faster = few ? j.high < 1 / limit : surely && j.ratio <= 1 / rule.floor_ratio;
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
  const std::string own = sides > 1 ? c.evidence->own_from : "";
  const std::string& known = c.evidence->known_from;
  return own.empty() || known.empty() ? own + known : own + ", " + known;
}

// What all cases of a run together make of each one's chance.
struct Tried {
  double false_alarms = 0;
  std::vector<double> adjusted = {};  // p of either direction, corrected for the number of cases
  double rejected = 0;
  std::size_t candidates = 0;  // that may be slower

  bool found(std::size_t i) const { return adjusted[i] <= false_alarms; }
  // The one-sided level at which this case was, or would have been, found beside the others.
  double level(std::size_t i) const {
    const double rank = found(i) ? std::max(1.0, rejected) : rejected + 1;
    return std::min(0.5, false_alarms * rank / static_cast<double>(adjusted.size()) / 2);
  }
};

Tried tried_together(const Screening& screening, double false_alarms) {
  std::vector<double> p;
  for (const Screened& s : screening.cases) {
    p.push_back(std::min(1.0, 2 * std::min(s.p_slower(), s.p_faster())));
  }
  Tried tried{.false_alarms = false_alarms, .adjusted = benjamini_hochberg(p)};
  for (std::size_t i = 0; i < p.size(); ++i) {
    tried.rejected += tried.found(i) ? 1 : 0;
    tried.candidates += screening.cases[i].may_be_slower ? 1 : 0;
  }
  return tried;
}

LatencyJudgement numbers_for(const ProcessCase& c, const Screened& s, const Tried& tried,
                             std::size_t i) {
  const double noise =
      of_a_median * student_upper_quantile(tried.level(i), s.degrees_of_freedom) * s.standard_error;
  const double floor = std::log(c.rule->floor_ratio);
  const bool few = c.evidence->now.size() < least_for_a_change;
  const double limit = std::log(std::max(c.rule->ratio_limit, c.rule->outlier_ratio));
  return {
      .result_us = std::exp(s.value + s.baseline),
      .baseline_us = std::exp(s.baseline),
      .ratio = std::exp(s.value),
      .low = std::exp(s.low),
      .high = std::exp(s.high),
      .limit = c.rule->ratio_limit,
      .smallest_failing_ratio = std::exp(few ? limit + (s.value - s.low) : std::max(floor, noise)),
      .between_runs = s.standard_error,
      .result_processes = c.evidence->now.size(),
      .baseline_processes = c.evidence->baseline.size(),
      .between_processes = s.between,
      .spread_from = where_spread_is_from(c),
      .limited_by = few             ? "the policy's limit for one process, and noise"
                    : noise > floor ? "noise"
                                    : "the policy's floor",
      .adjusted_p = tried.adjusted[i]};
}

// These processes were not measured in turn, and the case is one of many: outliers among them, of
// which there may be one in fifty, must not make a change as they may of a mean. The median of the
// others must show what would have failed, and all processes half of it but for one in five, two
// in seven, ...
bool stands_without_extremes(const ProcessCase& c, const Screened& s, double smallest_ratio) {
  const std::span<const double> now = c.evidence->now;
  if (now.size() < least_for_a_change) return false;
  const bool slower = s.value > 0;
  const double smallest = std::log(smallest_ratio);
  const auto shown = [&](double value) { return (slower ? 1 : -1) * (value - s.baseline); };
  const auto showing = static_cast<std::size_t>(
      std::ranges::count_if(now, [&](double value) { return shown(value) >= smallest / 2; }));
  const std::size_t excused = (now.size() - least_for_a_change) / 2;
  return showing + excused >= now.size() && shown(median_without_extreme(now, slower)) >= smallest;
}

}  // namespace

bool judged_by_processes(const CaseEvidence& e) {
  if (e.now.empty() || e.baseline.empty()) return false;
  return e.now.size() > 1 || e.baseline.size() > 1 || e.known.degrees_of_freedom > 0;
}

std::vector<LatencyVerdict> judge_latencies(std::span<const ProcessCase> cases,
                                            const Policy& policy) {
  Aim aim{.false_alarms = policy.false_alarms};
  aim.most_prior = prior_shared_by(cases);
  std::vector<CaseSamples> samples;
  for (const ProcessCase& c : cases) {
    samples.push_back({c.evidence->now, c.evidence->baseline, c.evidence->known});
  }
  const Screening screening = screen(samples, aim, policy.confidence);
  const Tried tried = tried_together(screening, policy.false_alarms);
  std::vector<LatencyVerdict> verdicts;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const ProcessCase& c = cases[i];
    const Screened& s = screening.cases[i];
    LatencyJudgement j = numbers_for(c, s, tried, i);
    j.pairs_needed = pairs_needed(spread_to_plan_with(screening, s), tried.candidates, aim);
    const bool surely = tried.found(i) && stands_without_extremes(c, s, j.smallest_failing_ratio);
    Finding finding = found(j, *c.rule, surely);
    j.change = change_of(j, finding.verdict);
    verdicts.push_back({.finding = std::move(finding), .numbers = std::move(j)});
  }
  return verdicts;
}

}  // namespace moegauge
