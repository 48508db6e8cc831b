// The four outcomes of a comparison.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/judge/statistics.h"

namespace moegauge {

enum class Change : std::uint8_t {
  faster,        // the whole interval lies below 1
  same,          // it lies within the margin about 1
  slower,        // it lies above 1
  inconclusive,  // it holds 1 and reaches beyond the margin
  none,          // there is no ratio
};
std::string_view to_string(Change change);

// `margin` > 1: ratios within [1 / margin, margin] are the same for all practical purposes.
Change classify(const RatioInterval& interval, double margin);

}  // namespace moegauge
