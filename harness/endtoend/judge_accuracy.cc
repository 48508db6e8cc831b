#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/endtoend/row_verdicts.h"
#include "harness/endtoend/verdicts.h"
#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"

namespace moegauge {
namespace {

struct Measure {
  Score score = {};
  std::optional<double> questions = {};  // given, or estimated from the standard error
  bool estimated = false;
  std::size_t runs = 1;
};

// Several runs asked the same questions: their mean has the standard error of one.
Measure measure_of(const EndToEndPoint& point) {
  Measure measure{.runs = point.rows.size()};
  double sum = 0;
  std::optional<double> error;
  for (const EndToEndRow* row : point.rows) {
    sum += *row->number("value");
    if (const auto one = row->number("stderr")) error = std::max(error.value_or(0), *one);
  }
  measure.score.value = sum / static_cast<double>(point.rows.size());
  measure.questions = point.number("samples");
  measure.score.standard_error = share_error({measure.score.value, error}, measure.questions);
  const double p = measure.score.value;
  if (!measure.questions && error && *error > 0 && p > 0 && p < 1) {
    measure.questions = std::round(p * (1 - p) / (*error * *error)) + 1;
    measure.estimated = true;
  }
  return measure;
}

struct Paired {
  Discordant discordant = {};
  std::int64_t questions = 0;
};

// Where each side is one run with a log, of the same questions.
std::optional<Paired> paired(const EndToEndPoint& now, const EndToEndPoint& then) {
  if (now.rows.size() != 1 || then.rows.size() != 1) return std::nullopt;
  const auto &a = now.row().questions, &b = then.row().questions;
  if (!a || !b || a->sha256 != b->sha256) return std::nullopt;
  const auto common = [](const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& y) {
    std::vector<std::int64_t> both;
    std::ranges::set_intersection(x, y, std::back_inserter(both));
    return static_cast<std::int64_t>(both.size());
  };
  return Paired{.discordant = {.only_old = common(a->wrong, b->right),
                               .only_new = common(a->right, b->wrong)},
                .questions = static_cast<std::int64_t>(a->right.size() + a->wrong.size())};
}

std::string difference_text(const NumberJudgement& j, double difference) {
  return j.share ? format_points(difference)
                 : (difference > 0 ? "+" : "") + format_plain(difference);
}

std::string count_text(const Measure& measure) {
  if (!measure.questions) return "an unknown number of";
  return (measure.estimated ? "about " : "") + format_plain(*measure.questions);
}

std::string score_text(const Measure& measure) {
  std::string text = format_plain(measure.score.value);
  if (measure.score.standard_error) text += " ± " + format_error(*measure.score.standard_error);
  return text;
}

std::string round_up(double count) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(count)) - 1));
  return format_plain(std::ceil(count / unit) * unit);
}

class Accuracy {
 public:
  Accuracy(const EndToEndPoint& now, const EndToEndPoint& then, const Policy& policy)
      : now_(now), then_(then), policy_(policy), here_(measure_of(now)), there_(measure_of(then)) {}

  CaseVerdict operator()() {
    CaseVerdict verdict{.id = now_.id, .changes = changes_between(now_, then_)};
    const double a = here_.score.value, b = there_.score.value;
    number_ = {.name = "value",
               .result = a,
               .baseline = b,
               .share = a >= 0 && a <= 1 && b >= 0 && b <= 1,
               .change = a - b,
               .limit = policy_.accuracy_rule(now_.id).margin,
               .result_error = here_.score.standard_error,
               .baseline_error = there_.score.standard_error,
               .result_questions = here_.questions,
               .baseline_questions = there_.questions};
    verdict.findings = {finding()};
    verdict.number = number_;
    settle(verdict);
    return verdict;
  }

 private:
  // More is better on this scale, whatever the metric.
  std::optional<NonInferiority> bounds() {
    const bool flip = now_.row().lower_is_better;
    if (const auto pairs = paired(now_, then_)) {
      Discordant d = pairs->discordant;
      if (flip) std::swap(d.only_old, d.only_new);
      number_.mcnemar_p = mcnemar_worse(d);
      // Of pairs only those that differ count; of none, as one could have.
      spread_ = std::max(1.0, static_cast<double>(d.only_old + d.only_new)) /
                static_cast<double>(pairs->questions);
      how_ = "; of the same " + std::to_string(pairs->questions) + " questions " +
             std::to_string(d.only_old) + " were lost and " + std::to_string(d.only_new) +
             " won (McNemar p = " + format_error(*number_.mcnemar_p) + " against it)";
      return paired_non_inferiority(d, pairs->questions, policy_.confidence);
    }
    spread_ =
        here_.score.value * (1 - here_.score.value) + there_.score.value * (1 - there_.score.value);
    how_ = "; " + count_text(here_) + " questions against " + count_text(there_);
    if (here_.runs > 1 || there_.runs > 1)
      how_ += ", means of " + std::to_string(here_.runs) + " and " + std::to_string(there_.runs) +
              " runs";
    Score now = here_.score, then = there_.score;
    if (flip) std::swap(now, then);
    return non_inferiority(now, then, policy_.confidence);
  }

  std::string what_was_seen(const NonInferiority& n) const {
    const bool flip = now_.row().lower_is_better;
    return "value " + score_text(here_) + ", was " + score_text(there_) + " (" +
           difference_text(number_, number_.change) + "): one-sided " +
           format_plain(100 * policy_.confidence) + "% bound " +
           difference_text(number_, flip ? *number_.high : n.lower_bound) + how_ + "; a loss of " +
           format_loss(n.smallest_seen) + " would have been seen (power 80%)";
  }

  std::string format_loss(double loss) const {
    return number_.share ? format_percent(loss) : format_plain(loss);
  }

  Finding finding() {
    const auto n = bounds();
    const std::string margin = "the margin of " + format_loss(number_.limit);
    if (!n) {
      return {Verdict::no_verdict, "accuracy",
              "value " + score_text(here_) + ", was " + score_text(there_) +
                  ": without a standard error on both sides nothing can be said; ingest it with "
                  "its logs of single questions, or with --questions"};
    }
    const bool flip = now_.row().lower_is_better;
    number_.low = flip ? -n->upper_bound : n->lower_bound;
    number_.high = flip ? -n->lower_bound : n->upper_bound;
    number_.smallest_seen = n->smallest_seen;
    const std::string text = what_was_seen(*n);
    const double limit = number_.limit;
    if (n->fails(limit))
      return {Verdict::fail, "accuracy", text + "; surely worse by more than " + margin,
              "find what lost accuracy, or record a new baseline on purpose"};
    if (policy_.controls && n->lower_bound > limit)
      return {Verdict::fail, "accuracy",
              "a control must not change: " + text + "; surely better by more than " + margin,
              "find what differs besides the change under test"};
    if (!n->passes(limit) || (policy_.controls && n->upper_bound > limit)) {
      const std::string needed =
          number_.share && limit > 0 && spread_ > 0
              ? "about " + round_up(questions_needed(spread_, limit, policy_.confidence)) +
                    " questions a side, which would tell scores that are equal"
              : "more questions";
      return {Verdict::inconclusive, "accuracy", text + "; too wide for " + margin,
              "ask " + needed};
    }
    if (n->lower_bound > 0 && !policy_.controls)
      return {Verdict::improved, "accuracy", text + "; surely better",
              "record a new baseline, so that the gain is kept"};
    return {Verdict::pass, "accuracy", text + "; within " + margin, "nothing to do"};
  }

  const EndToEndPoint &now_, &then_;
  const Policy& policy_;
  const Measure here_, there_;
  NumberJudgement number_;
  std::string how_;
  double spread_ = 0;  // the variance of one question's difference
};

}  // namespace

CaseVerdict judge_accuracy(const EndToEndPoint& now, const EndToEndPoint& then,
                           const Policy& policy) {
  return Accuracy(now, then, policy)();
}

}  // namespace moegauge
