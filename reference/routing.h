// From router logits to experts and weights: the rules of the models served. Computed in fp64,
// weights rounded once to fp32. Ids of a token are in order of falling score; ties go to the lower
// expert id.
//
// Always defined, never NaN:
//   an expert with a NaN logit is taken only when nothing better than -infinity is left, at weight
//   0, and counts as -infinity in a softmax; one with a NaN correction bias likewise, at its score;
//   experts of groups that were not chosen are never taken;
//   where weights would be divided by a sum of zero (all logits -infinity, or all sigmoids 0 under
//   renormalisation) they are 0; a sigmoid is 0 below a logit of -87, where fp32's normal numbers
//   end;
//   experts at +infinity share the softmax equally.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace moegauge {

inline constexpr double kLeastSigmoidLogit = -87;

enum class RoutingRule : std::uint8_t {
  // p = softmax(logits) over all experts; the top_k largest. renormalize: divided by their sum.
  softmax,
  // Softmax over the top_k largest logits only: equals `softmax` with renormalize (gpt-oss).
  softmax_after_topk,
  // s = sigmoid(logits), chosen on s + bias, weighed by s. Experts are split into `groups` runs of
  // equal length; a group's score is the sum of its two largest s + bias (its only one, where a
  // group is one expert); the top_k are taken from the top_groups best groups (DeepSeek-V3,
  // arXiv:2412.19437, with its published inference code).
  grouped_sigmoid,
  // The largest logit, weighed by its sigmoid (Llama-4). top_k is 1.
  sigmoid_top1,
};
std::optional<RoutingRule> routing_rule_from(std::string_view name);
std::string_view to_string(RoutingRule rule);

struct Router {
  RoutingRule rule = RoutingRule::softmax;
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  bool renormalize = false;  // softmax and grouped_sigmoid
  std::int64_t groups = 1, top_groups = 1;
  double scaling_factor = 1.0;  // multiplies the weights, after renormalisation
  // Always on, at weight 1: ids experts, experts + 1 and so on, after the routed ones.
  std::int64_t shared_experts = 0;
  std::int64_t slots() const { return top_k + shared_experts; }
};

struct RoutedTokens {
  std::vector<std::int32_t> topk_ids;  // [tokens, slots()]
  std::vector<float> topk_weights;     // [tokens, slots()]
};

// logits [tokens, experts] fp32; correction_bias [experts] or empty, read by grouped_sigmoid only.
// Throws InputError where the router's numbers do not fit together.
RoutedTokens route(const Router& router, std::span<const float> logits, std::int64_t tokens,
                   std::span<const float> correction_bias = {});

// What the rule makes of one token: what it chooses on, so that choices by others can be judged.
struct RoutingScores {
  std::vector<double> experts = {};  // -infinity: taken only when nothing better is left
  std::vector<double> groups = {};
  std::vector<bool> chosen_groups = {};
};
RoutingScores routing_scores(const Router& router, std::span<const float> logits,
                             std::span<const float> correction_bias = {});
// The weights of the experts `ids` [top_k] of one token, whoever chose them.
std::vector<double> routing_weights(const Router& router, std::span<const float> logits,
                                    std::span<const std::int32_t> ids);

}  // namespace moegauge
