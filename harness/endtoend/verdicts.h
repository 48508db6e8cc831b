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

// The standard error of a share of `questions`. What was given, but not below that of two more
// right and two more wrong answers (Agresti and Coull, Am. Stat. 52 (1998) 119-126) where fewer
// than 5 are right or wrong: there, and most of all where none is, the usual one says too little.
// None where it is 0 of an unknown number of questions.
std::optional<double> share_error(const Score& score, std::optional<double> questions);

// Of two runs over the same questions: how many only the old, and only the new, answered rightly.
struct Discordant {
  std::int64_t only_old = 0, only_new = 0;
};
// The probability of at least so lopsided a split, against the new one, if neither is better
// (McNemar, Psychometrika 12 (1947) 153-157, in its exact binomial form). 1 without a discordant
// pair.
double mcnemar_worse(const Discordant& discordant);

// The same question of two runs over the same `questions`: bounds by inverting the score test of
// the difference of paired shares (Tango, Stat. Med. 17 (1998) 891-908), which has no difference
// for a proof of equality where no pair is discordant.
NonInferiority paired_non_inferiority(const Discordant& discordant, std::int64_t questions,
                                      double confidence = 0.95);

// How many questions a side tell scores that are equal in truth from ones a margin apart, with 80%
// power; `spread` is the sum of value (1 - value) of both.
double questions_needed(double spread, double margin, double confidence = 0.95);

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
}  // namespace moegauge
