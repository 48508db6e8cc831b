#include "harness/statistics/multiple.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace moegauge {

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });  // largest first
  std::vector<double> adjusted(p.size());
  const double count = static_cast<double>(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double rank = static_cast<double>(order.size() - i);
    least = std::min(least, p[order[i]] * count / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

}  // namespace moegauge
