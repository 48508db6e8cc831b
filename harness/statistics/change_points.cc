#include "harness/statistics/change_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace moegauge {
namespace {

// Twice the mid-ranks: integers, of which floats hold every sum of up to 2896 exactly.
std::vector<float> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<float> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<float>(begin + end);
  }
  return ranks;
}

struct Split {
  std::size_t at = 0;
  double statistic = -1;
};

class Stretch {
 public:
  explicit Stretch(std::vector<float> ranks)
      : ranks_(std::move(ranks)), sums_(ranks_.size()), before_(ranks_.size()) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      for (const float other : ranks_) sums_[i] += std::abs(ranks_[i] - other);
    }
  }

  Split best_split(std::size_t least) {
    const std::size_t n = ranks_.size();
    // before_[t]: distances of value t to all before it. Columns, not rows: the compiler may then
    // add several at once without changing the order of any sum.
    std::ranges::fill(before_, 0.0f);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const float rank = ranks_[i];
      for (std::size_t t = i + 1; t < n; ++t) before_[t] += std::abs(ranks_[t] - rank);
    }
    const double all = std::accumulate(before_.begin(), before_.end(), 0.0);
    Split best;
    double within_left = 0, sums_left = 0;
    for (std::size_t at = 1; at < n; ++at) {
      within_left += before_[at - 1];
      sums_left += sums_[at - 1];
      if (at < least || n - at < least) continue;
      const double between = sums_left - 2 * within_left;
      const double within_right = all - within_left - between;
      const auto m = static_cast<double>(at), k = static_cast<double>(n - at);
      const double energy = 2 * between / (m * k) - 2 * within_left / (m * (m - 1)) -
                            2 * within_right / (k * (k - 1));
      const double statistic = m * k / (m + k) * energy;
      if (statistic > best.statistic) best = {at, statistic};
    }
    return best;
  }

  // Not of std::shuffle, whose draws differ between libraries.
  void shuffle(std::mt19937_64& random) {
    for (std::size_t i = ranks_.size(); i > 1; --i) {
      const std::size_t j = random() % i;
      std::swap(ranks_[i - 1], ranks_[j]);
      std::swap(sums_[i - 1], sums_[j]);
    }
  }

 private:
  std::vector<float> ranks_, sums_, before_;
};

// The test's p, or 1 as soon as it cannot be within `level` any more.
double p_of(Stretch& stretch, const Split& found, const ChangePointSearch& search,
            std::mt19937_64& random) {
  const auto of_all = static_cast<double>(search.permutations + 1);
  std::size_t as_large = 0;
  for (std::size_t i = 0; i < search.permutations; ++i) {
    stretch.shuffle(random);
    if (stretch.best_split(search.least).statistic >= found.statistic * (1 - 1e-12)) ++as_large;
    if (static_cast<double>(1 + as_large) > search.level * of_all) return 1;
  }
  return static_cast<double>(1 + as_large) / of_all;
}

void divide(std::span<const double> values, std::size_t begin, std::size_t end,
            const ChangePointSearch& search, std::vector<ChangePoint>& found) {
  if (end - begin < 2 * search.least) return;
  Stretch stretch(ranks_of(values.subspan(begin, end - begin)));
  const Split split = stretch.best_split(search.least);
  if (split.statistic <= 0) return;
  std::mt19937_64 random(search.seed * 1'000'003 + begin * 4096 + (end - begin));
  const double p = p_of(stretch, split, search, random);
  if (p > search.level) return;
  divide(values, begin, begin + split.at, search, found);
  found.push_back({.at = begin + split.at, .p = p});
  divide(values, begin + split.at, end, search, found);
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> values,
                                       const ChangePointSearch& search) {
  const std::size_t window = std::min<std::size_t>(std::max(search.window, 4 * search.least), 2000);
  std::vector<ChangePoint> found;
  if (values.size() <= window) {
    divide(values, 0, values.size(), search, found);
    return found;
  }
  for (std::size_t begin = 0;; begin += window / 2) {
    const bool last = begin + window >= values.size();
    if (last) begin = values.size() - window;
    std::vector<ChangePoint> here;
    divide(values.subspan(begin, window), 0, window, search, here);
    for (ChangePoint change : here) {
      const bool early = change.at < window / 4 && begin > 0;
      const bool late = change.at >= window - window / 4 && !last;
      change.at += begin;
      // The last window may reach further back than half.
      const bool known = !found.empty() && change.at < found.back().at + search.least;
      if (!early && !late && !known) found.push_back(change);
    }
    if (last) return found;
  }
}

}  // namespace moegauge
