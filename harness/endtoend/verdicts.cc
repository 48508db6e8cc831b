#include "harness/endtoend/verdicts.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/judge/statistics.h"
#include "reference/random/portable_math.h"

namespace moegauge {

std::optional<NonInferiority> non_inferiority(const Score& now, const Score& then,
                                              double confidence) {
  if (!now.standard_error || !then.standard_error) return std::nullopt;
  const double error = std::hypot(*now.standard_error, *then.standard_error);
  const double z = normal_quantile(confidence);
  const double difference = now.value - then.value;
  return NonInferiority{.difference = difference,
                        .lower_bound = difference - z * error,
                        .smallest_seen = (z + normal_quantile(0.8)) * error,
                        .upper_bound = difference + z * error};
}

std::optional<double> share_error(const Score& score, std::optional<double> questions) {
  if (!score.standard_error) return std::nullopt;
  const double p = score.value;
  if (!questions || p < 0 || p > 1) {
    return *score.standard_error > 0 ? score.standard_error : std::nullopt;
  }
  const double n = *questions;
  if (n * p >= 5 && n * (1 - p) >= 5) return score.standard_error;
  const double shrunk = (n * p + 2) / (n + 4);
  return std::max(*score.standard_error, std::sqrt(shrunk * (1 - shrunk) / (n + 4)));
}

double mcnemar_worse(const Discordant& discordant) {
  const std::int64_t n = discordant.only_old + discordant.only_new;
  // P(X >= only_old) = P(X <= n - only_old) for X ~ Binomial(n, 1/2).
  return binomial_half_cdf(static_cast<std::ptrdiff_t>(n - discordant.only_old),
                           static_cast<std::size_t>(n));
}

namespace {

// Tango's test of a difference: standard normal where `difference` is the true one, and falling in
// it.
double tango_score(const Discordant& d, double n, double difference) {
  const auto b = static_cast<double>(d.only_new), c = static_cast<double>(d.only_old);
  const double linear = -b - c + (2 * n - b + c) * difference;
  const double constant = -c * difference * (1 - difference);
  const double root = std::sqrt(std::max(0.0, linear * linear - 8 * n * constant));
  const double only_old = (root - linear) / (4 * n);  // its share, given the difference
  const double variance = n * (2 * only_old + difference * (1 - difference));
  const double distance = b - c - n * difference;
  if (variance <= 0) return distance > 0 ? HUGE_VAL : distance < 0 ? -HUGE_VAL : 0;
  return distance / std::sqrt(variance);
}

// Where the score crosses `target`, between two differences.
double tango_bound(const Discordant& d, double n, double low, double high, double target) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (tango_score(d, n, middle) > target ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

NonInferiority paired_non_inferiority(const Discordant& discordant, std::int64_t questions,
                                      double confidence) {
  const double z = normal_quantile(confidence), n = static_cast<double>(questions);
  const auto lost = static_cast<double>(discordant.only_old);
  const auto won = static_cast<double>(discordant.only_new);
  const double difference = (won - lost) / n;
  return {.difference = difference,
          .lower_bound = tango_bound(discordant, n, -1, difference, z),
          .smallest_seen = (z + normal_quantile(0.8)) * std::sqrt(std::max(1.0, won + lost)) / n,
          .upper_bound = tango_bound(discordant, n, difference, 1, -z)};
}

double questions_needed(double spread, double margin, double confidence) {
  const double z = normal_quantile(confidence) + normal_quantile(0.8);
  return std::ceil(z * z * spread / (margin * margin));
}

std::string to_string(ServingVerdict verdict) {
  switch (verdict) {
    case ServingVerdict::better:
      return "better";
    case ServingVerdict::same:
      return "same";
    case ServingVerdict::worse:
      return "worse";
  }
  throw std::logic_error("serving verdict out of range");
}

ServingChange serving_change(double now, double then, GoodDirection direction, double band) {
  const double change = now / then - 1;
  if (std::abs(change) <= band) return {change, ServingVerdict::same};
  const bool lower = change < 0;
  const bool better = lower == (direction == GoodDirection::lower_is_better);
  return {change, better ? ServingVerdict::better : ServingVerdict::worse};
}

}  // namespace moegauge
