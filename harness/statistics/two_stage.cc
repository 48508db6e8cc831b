#include "harness/statistics/two_stage.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "harness/statistics/distributions.h"
#include "harness/statistics/multiple.h"
#include "harness/statistics/robust.h"
#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

// Variances differ little from case to case in their degrees of freedom, and quantiles are costly.
class Quantiles {
 public:
  double operator()(double p, double degrees_of_freedom) {
    if (p != p_ || degrees_of_freedom != degrees_of_freedom_) {
      p_ = p;
      degrees_of_freedom_ = degrees_of_freedom;
      quantile_ = student_upper_quantile(p, degrees_of_freedom);
    }
    return quantile_;
  }

 private:
  double p_ = -1, degrees_of_freedom_ = -1, quantile_ = 0;
};

struct Sides {
  Location now, baseline;
  Variance between;  // all that is known of this case's spread
};

Sides sides_of(const CaseSamples& samples) {
  Sides sides{robust_location(samples.now), robust_location(samples.baseline), {}};
  // A few values show little of a spread, and one outlier among them is enough to hide it.
  const bool enough = samples.baseline.size() >= least_for_robust;
  const bool now_too = samples.now.size() >= least_for_robust || !enough;
  Variance seen = sides.baseline.variance;
  if (now_too)
    seen = enough || samples.now.size() < least_for_robust ? pool(seen, sides.now.variance)
                                                           : sides.now.variance;
  sides.between = pool(seen, samples.known);
  return sides;
}

std::optional<Variance> prior_of(std::span<const Sides> all) {
  std::vector<Variance> variances;
  variances.reserve(all.size());
  for (const Sides& sides : all) {
    if (std::isfinite(sides.between.degrees_of_freedom)) variances.push_back(sides.between);
  }
  return fit_variance_prior(variances);
}

std::vector<Sides> all_sides(std::span<const CaseSamples> cases) {
  std::vector<Sides> all;
  all.reserve(cases.size());
  for (const CaseSamples& samples : cases) all.push_back(sides_of(samples));
  return all;
}

double one_sided(const Screened& s, double sign) {
  if (s.degrees_of_freedom == 0 || s.standard_error == 0) return 1;
  return student_upper_tail(sign * s.value / s.standard_error, s.degrees_of_freedom);
}

}  // namespace

double Screened::p_slower() const { return one_sided(*this, 1); }
double Screened::p_faster() const { return one_sided(*this, -1); }

Screening screen(std::span<const CaseSamples> cases, const Aim& aim, double confidence) {
  const std::vector<Sides> all = all_sides(cases);
  const std::optional<Variance> prior = prior_of(all);
  Quantiles interval, reaching;
  Screening screening{.prior = prior};
  std::vector<Screened>& list = screening.cases;
  list.reserve(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Sides& sides = all[i];
    const Variance between = std::isinf(sides.between.degrees_of_freedom)
                                 ? sides.between
                                 : moderate(sides.between, prior, aim.most_prior);
    // Of a few processes one outlier is a candidate for nothing.
    const double now = between.value > 0 && between.degrees_of_freedom >= least_for_robust
                           ? robust_location(cases[i].now, std::sqrt(between.value)).value
                           : sides.now.value;
    Screened s{.value = now - sides.baseline.value,
               .baseline = sides.baseline.value,
               .degrees_of_freedom = between.degrees_of_freedom,
               .between = std::sqrt(between.value)};
    if (between.degrees_of_freedom > 0) {
      s.standard_error = s.between * std::sqrt(1 / static_cast<double>(cases[i].now.size()) +
                                               1 / static_cast<double>(cases[i].baseline.size()));
      const double half = interval((1 - confidence) / 2, s.degrees_of_freedom) * s.standard_error;
      s.low = s.value - half;
      s.high = s.value + half;
      const double reach =
          reaching(1 - aim.screening_power, s.degrees_of_freedom) * s.standard_error;
      s.may_be_slower = s.value + reach >= aim.shift;
      s.may_be_faster = s.value - reach <= -aim.shift;
    }
    list.push_back(s);
  }
  return screening;
}

namespace {

double rank_p(const PairedCase& candidate, bool slower) {
  if (candidate.pairs.size() < least_for_ranks) return 0;  // ranks have no say
  std::vector<double> signed_values(candidate.pairs.begin(), candidate.pairs.end());
  if (!slower) {
    for (double& value : signed_values) value = -value;
  }
  return signed_rank_upper_p(signed_values);
}

Confirmation estimate(const PairedCase& candidate, const std::optional<Variance>& prior,
                      const Aim& aim, double confidence, Quantiles& interval) {
  assert(candidate.pairs.size() >= 2);
  const bool scaled = prior && prior->value > 0 && prior->degrees_of_freedom >= least_for_robust;
  const Location location = scaled ? robust_location(candidate.pairs, std::sqrt(prior->value))
                                   : robust_location(candidate.pairs);
  const Variance variance = moderate(location.variance, prior, aim.most_prior);
  Confirmation c{
      .value = location.value,
      .standard_error = std::sqrt(variance.value / static_cast<double>(candidate.pairs.size())),
      .degrees_of_freedom = variance.degrees_of_freedom,
      .asked = candidate.asked};
  const double half = interval((1 - confidence) / 2, c.degrees_of_freedom) * c.standard_error;
  c.low = c.value - half;
  c.high = c.value + half;
  const bool slower =
      candidate.asked == Direction::slower || (candidate.asked == Direction::either && c.value > 0);
  const double toward = slower ? c.value : -c.value;
  // Of samples without any spread only a difference of 0 is no change.
  const double t = c.standard_error > 0 ? toward / c.standard_error
                                        : (toward > 0   ? HUGE_VAL
                                           : toward < 0 ? -HUGE_VAL
                                                        : 0.0);
  c.p = std::isinf(t) ? (t > 0 ? 0.0 : 1.0) : student_upper_tail(t, c.degrees_of_freedom);
  if (candidate.asked == Direction::either) c.p = std::min(1.0, 2 * c.p);
  return c;
}

}  // namespace

std::vector<Confirmation> confirm(std::span<const PairedCase> candidates,
                                  const std::optional<Variance>& between, const Aim& aim,
                                  double confidence) {
  std::optional<Variance> of_a_pair = between;
  if (of_a_pair) of_a_pair->value *= 2;
  std::vector<Confirmation> list;
  std::vector<double> p;
  Quantiles interval;
  for (const PairedCase& candidate : candidates) {
    list.push_back(estimate(candidate, of_a_pair, aim, confidence, interval));
    p.push_back(list.back().p);
  }
  const std::vector<double> adjusted = benjamini_hochberg(p);
  std::size_t rejected = 0;
  for (const double a : adjusted) rejected += a <= aim.false_alarms;
  Quantiles critical;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Confirmation& c = list[i];
    c.adjusted_p = adjusted[i];
    const double sides = c.asked == Direction::either ? 2 : 1;
    // The level of this case: of its rank where it is rejected, of the next one where it is not.
    const double rank =
        static_cast<double>(c.adjusted_p <= aim.false_alarms ? rejected : rejected + 1);
    const double level = aim.false_alarms * rank / static_cast<double>(list.size()) / sides;
    c.smallest = std::max(aim.least, critical(level, c.degrees_of_freedom) * c.standard_error);
    if (c.adjusted_p > aim.false_alarms) continue;
    c.rank_p = rank_p(candidates[i], c.value > 0);
    if (*c.rank_p > aim.rank_level || std::abs(c.value) < aim.least) continue;
    c.found = c.value > 0 ? Direction::slower : Direction::faster;
  }
  return list;
}

std::size_t pairs_needed(const Variance& between, std::size_t candidates, const Aim& aim) {
  if (!(between.degrees_of_freedom > 0) || !std::isfinite(between.value)) return 0;
  const double count = std::max(1.0, static_cast<double>(candidates));
  const double prior = std::min(between.degrees_of_freedom, aim.most_prior);
  if (!(prior > 0)) return 0;
  const double z_power = normal_quantile(aim.confirmation_power);
  // The mean of the scaled inverse chi-square distribution that the prior is: cases are unlike, and
  // the noisy ones must be seen too.
  const double variance = between.value * prior / std::max(prior - 2, prior / 4);
  std::size_t pairs = least_pairs;
  // The level's quantile falls as pairs add degrees of freedom, so that few rounds settle it.
  for (int i = 0; i < 20; ++i) {
    const double df = prior + static_cast<double>(pairs) - 1;
    const double standard_errors = student_upper_quantile(aim.false_alarms / count, df) + z_power;
    // Of a pair there are two processes. The robust centre costs 1% of a normal mean's precision,
    // noise within the runs about as much.
    const double needed = std::ceil(2 * 1.02 * variance * std::pow(standard_errors / aim.shift, 2));
    const auto next = static_cast<std::size_t>(std::clamp(needed, double{least_pairs}, 1e6));
    if (next == pairs) break;
    pairs = next;
  }
  return pairs;
}

StagePlan plan_stages(const Variance& between, std::size_t cases, std::size_t baseline_processes,
                      const Aim& aim) {
  const double n = static_cast<double>(cases);
  const double z_screening = normal_quantile(aim.screening_power);
  StagePlan best;
  double least_cost = HUGE_VAL;
  for (std::size_t m = 1; m <= 64; ++m) {
    const double error = std::sqrt(
        between.value * (1 / static_cast<double>(m) + 1 / static_cast<double>(baseline_processes)));
    const double expected = n * normal_upper_tail(aim.shift / error - z_screening);
    const double candidates = std::max(1.0, std::ceil(expected));
    const std::size_t pairs = pairs_needed(between, static_cast<std::size_t>(candidates), aim);
    const double cost = static_cast<double>(m) * n + 2 * static_cast<double>(pairs) * candidates;
    if (pairs == 0 || cost >= least_cost) continue;
    least_cost = cost;
    best = {.screening_processes = m, .pairs = pairs, .expected_candidates = expected};
  }
  return best;
}

}  // namespace moegauge
