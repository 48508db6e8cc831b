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

double sigmoid(double x) { return x < kLeastSigmoidLogit ? 0 : 1 / (1 + std::exp(-x)); }

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

// A NaN counts as -infinity.
std::vector<double> sane(std::span<const float> logits) {
  std::vector<double> row(logits.size());
  std::ranges::transform(logits, row.begin(), [](float logit) { return or_never(logit); });
  return row;
}

std::vector<double> softmax_weights(const Router& router, const std::vector<double>& logits,
                                    std::span<const std::int32_t> ids) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> weights;
  for (const auto id : ids) {
    weights.push_back(softmax_term(logits[static_cast<std::size_t>(id)], largest));
  }
  double sum = sum_of(weights);
  if (router.rule == RoutingRule::softmax && !router.renormalize) {
    sum = 0;
    for (const double logit : logits) sum += softmax_term(logit, largest);
  }
  divide(weights, sum);
  return weights;
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

void score_groups(const Router& router, RoutingScores& scores) {
  const auto groups = static_cast<std::size_t>(router.groups);
  const std::size_t size = scores.experts.size() / groups;
  for (std::size_t g = 0; g < groups; ++g) {
    scores.groups.push_back(group_score(std::span(scores.experts).subspan(g * size, size)));
  }
  Ids best = iota(router.groups);
  take_largest(best, static_cast<std::size_t>(router.top_groups), scores.groups);
  scores.chosen_groups.assign(groups, false);
  for (const auto g : best) scores.chosen_groups[static_cast<std::size_t>(g)] = true;
}

Ids choose(const Router& router, const RoutingScores& scores) {
  Ids ids;
  const std::size_t size = scores.experts.size() / scores.groups.size();
  for (std::size_t e = 0; e < scores.experts.size(); ++e) {
    if (scores.chosen_groups[e / size]) ids.push_back(static_cast<std::int32_t>(e));
  }
  take_largest(ids, static_cast<std::size_t>(router.top_k), scores.experts);
  return ids;
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

RoutingScores routing_scores(const Router& router, std::span<const float> logits,
                             std::span<const float> correction_bias) {
  RoutingScores scores;
  if (router.rule != RoutingRule::grouped_sigmoid) {
    scores.experts = sane(logits);
    scores.groups = {0};
    scores.chosen_groups = {true};
    return scores;
  }
  for (std::size_t e = 0; e < logits.size(); ++e) {
    const double bias = correction_bias.empty() ? 0.0 : correction_bias[e];
    // No bias may lift an expert without a logit, unlike one whose sigmoid is 0.
    scores.experts.push_back(std::isnan(logits[e]) ? -kInfinity
                                                   : or_never(sigmoid(logits[e]) + bias));
  }
  score_groups(router, scores);
  return scores;
}

std::vector<double> routing_weights(const Router& router, std::span<const float> logits,
                                    std::span<const std::int32_t> ids) {
  std::vector<double> weights;
  if (router.rule == RoutingRule::softmax || router.rule == RoutingRule::softmax_after_topk) {
    weights = softmax_weights(router, sane(logits), ids);
  } else {
    for (const auto id : ids) {
      weights.push_back(sigmoid(or_never(logits[static_cast<std::size_t>(id)])));
    }
    if (router.rule == RoutingRule::grouped_sigmoid && router.renormalize) {
      divide(weights, sum_of(weights));
    }
  }
  for (double& weight : weights) weight *= router.scaling_factor;
  return weights;
}

RoutedTokens route(const Router& router, std::span<const float> logits, std::int64_t tokens,
                   std::span<const float> correction_bias) {
  check(router, logits.size(), tokens, correction_bias.size());
  const auto experts = static_cast<std::size_t>(router.experts);
  RoutedTokens out;
  out.topk_ids.reserve(static_cast<std::size_t>(tokens * router.slots()));
  out.topk_weights.reserve(out.topk_ids.capacity());
  for (std::size_t m = 0; m < static_cast<std::size_t>(tokens); ++m) {
    const auto row = logits.subspan(m * experts, experts);
    const Ids ids = choose(router, routing_scores(router, row, correction_bias));
    out.topk_ids.insert(out.topk_ids.end(), ids.begin(), ids.end());
    for (const double weight : routing_weights(router, row, ids)) {
      out.topk_weights.push_back(static_cast<float>(weight));
    }
    for (std::int64_t s = 0; s < router.shared_experts; ++s) {
      out.topk_ids.push_back(static_cast<std::int32_t>(router.experts + s));
      out.topk_weights.push_back(1.0f);
    }
  }
  return out;
}

}  // namespace moegauge
