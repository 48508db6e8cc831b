#include "harness/statistics/robust.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

namespace moegauge {
namespace {

// How many of the 2^n choices of signs give each sum, as probabilities; index: the sum.
std::vector<double> sign_sum_distribution(std::span<const std::size_t> ranks) {
  std::vector<double> chance = {1.0};
  for (const std::size_t rank : ranks) {
    std::vector<double> next(chance.size() + rank, 0.0);
    for (std::size_t sum = 0; sum < chance.size(); ++sum) {
      next[sum] += chance[sum] / 2;
      next[sum + rank] += chance[sum] / 2;
    }
    chance = std::move(next);
  }
  return chance;
}

Location mean_and_variance(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return {mean, {}};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, {squares / (n - 1), n - 1}};
}

// Of one value, from the middle three quarters.
double winsorised_variance(std::span<const double> sorted) {
  const std::size_t n = sorted.size(), g = n / 8, h = n - 2 * g;
  const auto kept = sorted.subspan(g, h);
  const auto weight = [&](std::size_t i) {
    return i == 0 || i + 1 == h ? static_cast<double>(g + 1) : 1.0;
  };
  double sum = 0;
  for (std::size_t i = 0; i < h; ++i) sum += weight(i) * kept[i];
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (std::size_t i = 0; i < h; ++i) squares += weight(i) * (kept[i] - mean) * (kept[i] - mean);
  // The trimmed mean's variance is squares / (h (h - 1)); times n it is that of one value.
  const double count = static_cast<double>(h);
  return squares * static_cast<double>(n) / (count * (count - 1));
}

// Influence is bounded at `bound`.
Location m_estimate(std::span<const double> sorted, double bound) {
  const double n = static_cast<double>(sorted.size());
  const std::size_t half = sorted.size() / 2;
  double centre = sorted.size() % 2 == 1 ? sorted[half] : sorted[half - 1] / 2 + sorted[half] / 2;
  double squares = 0, inside = 0;
  for (int i = 0; i < 100; ++i) {
    double sum = 0;
    squares = inside = 0;
    for (const double value : sorted) {
      const double influence = std::clamp(value - centre, -bound, bound);
      sum += influence;
      squares += influence * influence;
      inside += std::abs(value - centre) < bound;
    }
    if (std::abs(sum) < 1e-10 * bound * n) break;
    // A Newton step, at most twice as long where few values lie inside: the sum falls with slope
    // -inside, so that the step cannot run away.
    centre += sum / std::max(inside, n / 2);
  }
  const double share = std::max(inside / n, 0.5);
  return {centre, {squares / (n - 1) / (share * share), n - 1}};
}

}  // namespace

Location robust_location(std::span<const double> values) {
  assert(!values.empty());
  if (values.size() < least_for_robust) return mean_and_variance(values);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double scale = std::sqrt(winsorised_variance(sorted));
  // Three quarters of the values are equal: they are the centre, and nothing is known of a spread.
  if (scale == 0) {
    return {sorted[sorted.size() / 2], {0, static_cast<double>(sorted.size() - 1)}};
  }
  return m_estimate(sorted, 2 * scale);
}

Location robust_location(std::span<const double> values, double scale) {
  assert(!values.empty() && scale > 0);
  if (values.size() == 1) return {values[0], {}};
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return m_estimate(sorted, 2 * scale);
}

double signed_rank_upper_p(std::span<const double> values) {
  std::vector<double> used;
  for (const double value : values) {
    if (value != 0) used.push_back(value);
  }
  if (used.empty()) return 1;
  std::sort(used.begin(), used.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  // Twice the ranks, so that the mean rank of a tie is whole.
  std::vector<std::size_t> ranks(used.size());
  std::size_t observed = 0;
  for (std::size_t begin = 0, end = 0; begin < used.size(); begin = end) {
    while (end < used.size() && std::abs(used[end]) == std::abs(used[begin])) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[i] = begin + 1 + end;
      if (used[i] > 0) observed += ranks[i];
    }
  }
  const std::vector<double> chance = sign_sum_distribution(ranks);
  return std::accumulate(chance.begin() + static_cast<std::ptrdiff_t>(observed), chance.end(), 0.0);
}

std::optional<RankInterval> hodges_lehmann(std::span<const double> values, double confidence) {
  const std::size_t n = values.size();
  if (n < least_for_ranks) return std::nullopt;
  std::vector<double> means;
  means.reserve(n * (n + 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i; j < n; ++j) means.push_back(values[i] / 2 + values[j] / 2);
  }
  std::sort(means.begin(), means.end());
  std::vector<std::size_t> ranks(n);
  std::iota(ranks.begin(), ranks.end(), std::size_t{1});
  const std::vector<double> chance = sign_sum_distribution(ranks);
  // The interval [m_(k), m_(M+1-k)] misses with 2 P(W+ <= k - 1).
  std::size_t k = 1;
  double below = chance[0];
  while (2 * (below + chance[k]) <= 1 - confidence) below += chance[k++];
  const std::size_t half = means.size() / 2;
  return RankInterval{
      .value = means.size() % 2 == 1 ? means[half] : means[half - 1] / 2 + means[half] / 2,
      .low = means[k - 1],
      .high = means[means.size() - k],
      .coverage = 1 - 2 * below};
}

}  // namespace moegauge
