// Verdicts on scores and on serving, which are single numbers or have a standard error at best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moegauge {

struct Score {
  double value = 0;  // higher is better
  std::optional<double> standard_error = {};
};

// Is the new score no more than a margin below the old one? One-sided: the lower bound of new - old
// from both standard errors, taken for independent.
struct NonInferiority {
  double difference = 0;   // new - old
  double lower_bound = 0;  // one-sided, at the confidence
  // The least true loss that a pair of such runs finds with 80% power.
  double smallest_seen = 0;
  bool passes(double margin) const { return lower_bound >= -margin; }
  // Surely worse than the margin: even the upper bound lies below it.
  double upper_bound = 0;
  bool fails(double margin) const { return upper_bound < -margin; }
};
// None where a standard error is missing.
std::optional<NonInferiority> non_inferiority(const Score& now, const Score& then,
                                              double confidence = 0.95);

// Of two runs over the same questions: how many only the old, and only the new, answered rightly.
struct Discordant {
  std::int64_t only_old = 0, only_new = 0;
};
// The probability of at least so lopsided a split, against the new one, if neither is better
// (McNemar, Psychometrika 12 (1947) 153-157, in its exact binomial form). 1 without a discordant
// pair.
double mcnemar_worse(const Discordant& discordant);

// Two numbers of one serving point. `change` is (now - then) / then.
enum class GoodDirection { lower_is_better, higher_is_better };
enum class ServingVerdict { better, same, worse };
std::string to_string(ServingVerdict verdict);
struct ServingChange {
  double change = 0;
  ServingVerdict verdict = ServingVerdict::same;
};
// `band` is what may pass for noise: 0.01 for 1%.
ServingChange serving_change(double now, double then, GoodDirection direction, double band);
// A control is a point that the change must not touch: within the band in either direction.
bool control_holds(double now, double then, double band);

// Times of one run, in the order of growing load. Those that exceed the next one by more than
// `factor` are flagged: more work cannot take less time, so something else was timed.
std::vector<bool> non_monotone(const std::vector<double>& times, double factor = 2);

}  // namespace moegauge
