#include "reference/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::array<std::pair<std::string_view, RoutingRule>, 4> kRules = {{
    {"softmax", RoutingRule::softmax},
    {"softmax_after_topk", RoutingRule::softmax_after_topk},
    {"grouped_sigmoid", RoutingRule::grouped_sigmoid},
    {"sigmoid_top1", RoutingRule::sigmoid_top1},
}};

using Ids = std::vector<std::int32_t>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double or_never(double score) { return std::isnan(score) ? -kInfinity : score; }

// Reorders `ids`, given in rising order, so that the first k are those of the largest scores in
// falling order.
void take_largest(Ids& ids, std::size_t k, const std::vector<double>& scores) {
  const auto better = [&](std::int32_t a, std::int32_t b) {
    const double sa = scores[static_cast<std::size_t>(a)], sb = scores[static_cast<std::size_t>(b)];
    return sa != sb ? sa > sb : a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(k), ids.end(), better);
  ids.resize(k);
}

Ids iota(std::int64_t n) {
  Ids ids(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  return ids;
}

// exp(logit - largest), with all mass on infinite logits where there are any.
double softmax_term(double logit, double largest) {
  if (largest == kInfinity) return logit == kInfinity ? 1 : 0;
  return logit == -kInfinity ? 0 : std::exp(logit - largest);
}

void divide(std::vector<double>& weights, double sum) {
  for (double& w : weights) w = sum > 0 ? w / sum : 0;
}

double sum_of(const std::vector<double>& weights) {
  double sum = 0;
  for (const double w : weights) sum += w;
  return sum;
}

struct Choice {
  Ids ids;
  std::vector<double> weights;
};

Choice softmax(const Router& router, const std::vector<double>& logits) {
  Choice choice{.ids = iota(router.experts), .weights = {}};
  take_largest(choice.ids, static_cast<std::size_t>(router.top_k), logits);
  const double largest = logits[static_cast<std::size_t>(choice.ids[0])];
  for (const auto id : choice.ids) {
    choice.weights.push_back(softmax_term(logits[static_cast<std::size_t>(id)], largest));
  }
  double sum = sum_of(choice.weights);
  if (router.rule == RoutingRule::softmax && !router.renormalize) {
    sum = 0;
    for (const double logit : logits) sum += softmax_term(logit, largest);
  }
  divide(choice.weights, sum);
  return choice;
}

double group_score(std::span<const double> biased) {
  double first = -kInfinity, second = -kInfinity;
  for (const double score : biased) {
    if (score > first)
      second = std::exchange(first, score);
    else
      second = std::max(second, score);
  }
  return biased.size() == 1 || first == kInfinity ? first : first + second;
}

Choice grouped_sigmoid(const Router& router, const std::vector<double>& logits,
                       std::span<const float> bias) {
  std::vector<double> scores, biased;
  for (std::size_t e = 0; e < logits.size(); ++e) {
    const bool absent = std::isnan(logits[e]);  // no bias may lift it, unlike a score of 0
    scores.push_back(absent ? 0 : sigmoid(logits[e]));
    biased.push_back(absent ? -kInfinity : or_never(scores[e] + (bias.empty() ? 0.0 : bias[e])));
  }
  const auto size = static_cast<std::size_t>(router.experts / router.groups);
  std::vector<double> group_scores;
  for (std::size_t g = 0; g < static_cast<std::size_t>(router.groups); ++g) {
    group_scores.push_back(group_score(std::span(biased).subspan(g * size, size)));
  }
  Ids groups = iota(router.groups);
  take_largest(groups, static_cast<std::size_t>(router.top_groups), group_scores);

  Choice choice;
  for (const auto g : groups) {
    for (std::size_t i = 0; i < size; ++i) {
      choice.ids.push_back(static_cast<std::int32_t>(static_cast<std::size_t>(g) * size + i));
    }
  }
  take_largest(choice.ids, static_cast<std::size_t>(router.top_k), biased);
  for (const auto id : choice.ids) choice.weights.push_back(scores[static_cast<std::size_t>(id)]);
  if (router.renormalize) divide(choice.weights, sum_of(choice.weights));
  return choice;
}

Choice sigmoid_top1(const Router& router, const std::vector<double>& logits) {
  Choice choice{.ids = iota(router.experts), .weights = {}};
  take_largest(choice.ids, 1, logits);
  choice.weights.push_back(sigmoid(logits[static_cast<std::size_t>(choice.ids[0])]));
  return choice;
}

Choice choose(const Router& router, std::vector<double> logits, std::span<const float> bias) {
  if (router.rule == RoutingRule::grouped_sigmoid) return grouped_sigmoid(router, logits, bias);
  for (double& logit : logits) logit = or_never(logit);
  return router.rule == RoutingRule::sigmoid_top1 ? sigmoid_top1(router, logits)
                                                  : softmax(router, logits);
}

void require(bool fits, const std::string& wrong, const std::string& right) {
  if (!fits) throw InputError("routing", wrong, right);
}

void check(const Router& r, std::size_t logits, std::int64_t tokens, std::size_t bias) {
  const auto text = [](auto n) { return std::to_string(n); };
  require(r.experts > 0, text(r.experts) + " experts", "at least one");
  require(r.top_k > 0 && r.top_k <= r.experts, "top_k " + text(r.top_k),
          "1 to " + text(r.experts) + ", the number of experts");
  require(tokens >= 0 && logits == static_cast<std::size_t>(tokens * r.experts),
          text(logits) + " logits for " + text(tokens) + " tokens", "tokens x experts of them");
  require(bias == 0 || bias == static_cast<std::size_t>(r.experts),
          text(bias) + " correction biases", "one per expert, or none");
  if (r.rule == RoutingRule::sigmoid_top1) {
    require(r.top_k == 1, "sigmoid_top1 with top_k " + text(r.top_k), "top_k 1");
  }
  if (r.rule != RoutingRule::grouped_sigmoid) return;
  require(r.groups > 0 && r.experts % r.groups == 0,
          text(r.experts) + " experts in " + text(r.groups) + " groups", "groups of equal length");
  require(r.top_groups > 0 && r.top_groups <= r.groups, "top_groups " + text(r.top_groups),
          "1 to " + text(r.groups) + ", the number of groups");
  const std::int64_t eligible = r.top_groups * (r.experts / r.groups);
  require(r.top_k <= eligible, "top_k " + text(r.top_k),
          "at most " + text(eligible) + ", the experts in the groups chosen");
}

}  // namespace

std::optional<RoutingRule> routing_rule_from(std::string_view name) {
  for (const auto& [known, rule] : kRules) {
    if (known == name) return rule;
  }
  return std::nullopt;
}

std::string_view to_string(RoutingRule rule) {
  for (const auto& [name, known] : kRules) {
    if (known == rule) return name;
  }
  return "";
}

RoutedTokens route(const Router& router, std::span<const float> logits, std::int64_t tokens,
                   std::span<const float> correction_bias) {
  check(router, logits.size(), tokens, correction_bias.size());
  const auto experts = static_cast<std::size_t>(router.experts);
  RoutedTokens out;
  out.topk_ids.reserve(static_cast<std::size_t>(tokens * router.top_k));
  out.topk_weights.reserve(out.topk_ids.capacity());
  std::vector<double> row(experts);
  for (std::size_t m = 0; m < static_cast<std::size_t>(tokens); ++m) {
    for (std::size_t e = 0; e < experts; ++e) row[e] = logits[m * experts + e];
    Choice choice = choose(router, row, correction_bias);
    out.topk_ids.insert(out.topk_ids.end(), choice.ids.begin(), choice.ids.end());
    for (const double w : choice.weights) {
      out.topk_weights.push_back(static_cast<float>(w * router.scaling_factor));
    }
  }
  return out;
}

}  // namespace moegauge
