// Variances shrunk across cases: a case with few processes borrows from its neighbours what
// processes usually do to a median. G. K. Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004), article 3.
#pragma once

#include <limits>
#include <optional>
#include <span>

namespace moegauge {

struct Variance {
  double value = 0;
  double degrees_of_freedom = 0;
};

// Scaled inverse chi-square distribution of the true variances: fitted by matching mean and
// variance of ln s^2 (section 6.2 there). More degrees of freedom mean more alike. Variances with
// less than 1 degree of freedom do not take part; none are left: no prior. A variance of 0 counts
// as 1e-5 of the median one, so that a case that never moved does not make all look unlike.
std::optional<Variance> fit_variance_prior(std::span<const Variance> variances);

// Posterior mean on the scale of 1 / variance: (d0 s0^2 + d s^2) / (d0 + d) with d0 + d degrees of
// freedom. `most` bounds d0, so that what a case shows of itself never counts for nothing: outliers
// and heavy tails make variances unlike in ways that the fit may not see.
Variance moderate(const Variance& own, const std::optional<Variance>& prior,
                  double most = std::numeric_limits<double>::infinity());

// Independent estimates of one variance as one.
Variance pool(const Variance& a, const Variance& b);

}  // namespace moegauge
