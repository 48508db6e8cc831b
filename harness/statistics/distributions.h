// Distributions that tests of hypotheses need. Each formula names its source; accurate to about
// 1e-10 relative, also far out in the tails, where corrections for many cases look.
#pragma once

#include <cstddef>

namespace moegauge {

// Regularised incomplete beta function I_x(a, b), 0 <= x <= 1: the continued fraction of DLMF
// 8.17.22, evaluated by the modified Lentz method.
double incomplete_beta(double a, double b, double x);

// P(Z > z) of the standard normal.
double normal_upper_tail(double z);

// P(T > t) of Student's t; infinite degrees of freedom are the normal. DLMF 8.17 with
// x = df / (df + t^2).
double student_upper_tail(double t, double degrees_of_freedom);
// The t with P(T > t) = p, 0 < p < 1.
double student_upper_quantile(double p, double degrees_of_freedom);

// psi(x) and psi'(x), x > 0: recurrence up to x >= 10, then the asymptotic series (Abramowitz and
// Stegun 6.3.18 and 6.4.12).
double digamma(double x);
double trigamma(double x);
// The x with trigamma(x) = y, y > 0, by the Newton iteration of Smyth (2004), appendix.
double trigamma_inverse(double y);

// One-sided upper limit, at `confidence`, of a probability of which `events` of `trials` were seen
// (Clopper and Pearson, Biometrika 26 (1934) 404-413); 1 where every trial was one.
double binomial_upper_limit(std::size_t events, std::size_t trials, double confidence);
double binomial_lower_limit(std::size_t events, std::size_t trials, double confidence);

}  // namespace moegauge
