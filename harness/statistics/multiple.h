// Many hypotheses at once.
#pragma once

#include <span>
#include <vector>

namespace moegauge {

// Adjusted p-values of the step-up procedure of Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57
// (1995) 289-300: rejecting what is at most q keeps the expected share of false rejections at q,
// and where every hypothesis is true, the chance of any rejection. In the order of `p`.
std::vector<double> benjamini_hochberg(std::span<const double> p);

}  // namespace moegauge
