// Elementary functions from + - * / and sqrt alone, which IEEE 754 fixes to the last bit, so that
// generated values do not depend on the C library. Accurate to about 1e-15 relative.
#pragma once

#include <cstdint>

namespace moegauge {

// x > 0, normal and finite.
double portable_log(double x);
// Underflows to 0 below about -708 and is infinite above 709.
double portable_exp(double x);
// The standard normal quantile, 0 < p < 1: algorithm AS 241, PPND16 (Wichura, Applied Statistics
// 37, 1988), accurate to about 1e-16.
double normal_quantile(double p);

}  // namespace moegauge
