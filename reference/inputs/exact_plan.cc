#include <bit>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "reference/base/input_error.h"
#include "reference/inputs/exact.h"

namespace moegauge {
namespace {

constexpr double kSmallestGate = 64;
// |h| of pairs other than anchors, in the units in which an anchor pair's |h| is A: a gate of 2
// times an up of 9. (x stays below it, too.)
constexpr double kLargestOther = 18;

[[noreturn]] void refuse(const std::string& wrong, const std::string& right) {
  throw InputError("inputs 'exact'", wrong, right);
}

// Of an integer held as a double: how often 2 divides it; 0 for 0.
int trailing_zeros(double value) {
  return value == 0 ? 0 : std::countr_zero(static_cast<std::uint64_t>(std::fabs(value)));
}

// The smallest highest * 2^k that is at least `least`, with units of 1 an integer multiple of 2^k.
double scaled_anchor(const OperandTraits& operand, double least) {
  int k = -std::min(trailing_zeros(operand.highest), trailing_zeros(operand.lowest));
  while (std::ldexp(operand.highest, k) < least) ++k;
  if (k > 0) refuse("the scheme's elements hold too few values", "another distribution");
  return std::ldexp(operand.highest, k);
}

std::int64_t group_length(const OperandTraits& weight, const OperandTraits& activation) {
  std::int64_t length = 128;
  for (const auto* operand : {&weight, &activation}) {
    const bool cut = operand->scale != ScaleKind::none && operand->unit.cols > 0;
    if (cut) length = std::gcd(length, operand->unit.cols);
  }
  if (length < 8) refuse("scale units of fewer than 8 columns in common", "another distribution");
  return length;
}

void set_weight_anchors(ExactPlan& plan, const OperandTraits& weight, int unit_spread) {
  if (weight.group_index)
    refuse("columns scattered over groups (act_order)", "another distribution");
  const bool scaled = weight.scale != ScaleKind::none;
  plan.highest = scaled ? scaled_anchor(weight, 3) : 7;
  plan.lowest = scaled ? plan.highest / weight.highest * weight.lowest : -7;
  // 1 stays an integer multiple of the scale while the anchor grows.
  const int room = scaled ? std::max(0, -std::ilogb(plan.highest / weight.highest)) : 4;
  plan.spread = std::min(2 * unit_spread, room);
}

double smallest_weight_on_input(const Layer& layer) {
  // fp16 has no room above the anchors for a second weight.
  return layer.dtype == Dtype::fp16 ? 0.5 : 0.25;
}

}  // namespace

std::int64_t PairedAxis::roomy_groups() const {
  return pairs_in(groups() - 1) >= 4 ? groups() : groups() - 1;
}

ExactPlan plan_exact(const Layer& layer, const SchemeTraits& traits, std::uint64_t seed,
                     int unit_spread) {
  const auto kind = layer.activation.kind;
  if (kind != ActivationKind::silu_and_mul && kind != ActivationKind::gelu_and_mul) {
    refuse("the layer's activation is not linear for large gates", "silu_and_mul or gelu_and_mul");
  }
  if (layer.hidden_size < 8 || layer.intermediate_size < 8) {
    refuse("hidden or intermediate size under 8", "at least 8");
  }
  ExactPlan plan;
  plan.seed = seed;
  plan.biased = layer.expert_bias;
  const std::int64_t group = group_length(traits.weight, traits.activation);
  plan.k = {layer.hidden_size, group};
  plan.n = {layer.intermediate_size, group};

  const bool scaled = traits.activation.scale != ScaleKind::none;
  if (scaled && traits.activation.lowest != -traits.activation.highest) {
    refuse("activations quantised to unequal extremes", "another distribution");
  }
  plan.anchor = scaled ? scaled_anchor(traits.activation, kLargestOther) : 28;
  set_weight_anchors(plan, traits.weight, unit_spread);

  const double least = layer.router_weight_on_input ? smallest_weight_on_input(layer) : 1;
  plan.product_unit = kSmallestGate / 8 / least;
  plan.x_unit = 2;
  plan.w13_unit = plan.product_unit / plan.x_unit;
  // h is in units of 8 P^2 (P^2 / 16 and more under a weight on the input), y in units of 1.
  plan.w2_unit = 1 / (kSmallestGate * 8);

  // top_k weights are at least 1 / ceil2(top_k), so y is at most ceil2(top_k) * inner_limit of its
  // last place, which 8 bits must hold.
  const auto slots = std::bit_ceil(static_cast<std::uint64_t>(layer.top_k));
  plan.inner_limit = slots > 256 ? 0 : static_cast<int>(256 / slots) - (plan.biased ? 1 : 0);
  if (plan.inner_limit < (plan.biased ? 6 : 4)) {
    refuse("top_k " + std::to_string(layer.top_k) + " sums too many terms for 8 bits",
           plan.biased ? "at most 32" : "at most 64");
  }
  return plan;
}

std::optional<std::string> no_exact_inputs(const Layer& layer, const SchemeTraits& traits) {
  try {
    plan_exact(layer, traits, 0, 0);
  } catch (const InputError& error) {
    return error.what();
  }
  return std::nullopt;
}

double exact_h_anchor(const Layer& layer, const ExactPlan& plan) {
  const double weight = layer.router_weight_on_input ? 0.5 : 1;
  return 8 * plan.product_unit * weight * plan.anchor * plan.product_unit * weight;
}

std::vector<float> exact_topk_weights(const Layer& layer, std::int64_t tokens, std::uint64_t seed,
                                      std::uint64_t stream) {
  RandomWords words(RandomStream(seed, Purpose::topk_weights, stream));
  const auto k = static_cast<std::size_t>(layer.top_k);
  const std::size_t slots = std::bit_ceil(k);
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(tokens) * k);
  for (std::int64_t m = 0; m < tokens; ++m) {
    if (k == 1) {
      const bool small = words.next() % 2 == 1 &&
                         !(layer.router_weight_on_input && smallest_weight_on_input(layer) == 0.5);
      out.push_back(small ? 0.25f : 0.5f);
      continue;
    }
    // (slots - k) of 2 / slots and the rest of 1 / slots sum to 1.
    std::vector<float> row(k, 1 / static_cast<float>(slots));
    for (std::size_t t = 0; t < slots - k; ++t) row[t] *= 2;
    for (std::size_t t = k; t > 1; --t) {
      std::swap(row[t - 1], row[words.below(static_cast<std::uint32_t>(t))]);
    }
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

}  // namespace moegauge
