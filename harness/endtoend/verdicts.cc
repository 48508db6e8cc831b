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

double mcnemar_worse(const Discordant& discordant) {
  const std::int64_t n = discordant.only_old + discordant.only_new;
  // P(X >= only_old) = P(X <= n - only_old) for X ~ Binomial(n, 1/2).
  return binomial_half_cdf(static_cast<std::ptrdiff_t>(n - discordant.only_old),
                           static_cast<std::size_t>(n));
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

bool control_holds(double now, double then, double band) {
  return std::abs(now / then - 1) <= band;
}

std::vector<bool> non_monotone(const std::vector<double>& times, double factor) {
  std::vector<bool> flags(times.size(), false);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto later = std::find_if(times.begin() + static_cast<std::ptrdiff_t>(i) + 1, times.end(),
                                    [&](double time) { return times[i] > factor * time; });
    flags[i] = later != times.end();
  }
  return flags;
}

}  // namespace moegauge
