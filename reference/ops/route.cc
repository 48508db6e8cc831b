// route: router logits to experts and weights, by the model's rule (reference/routing.h).
//
//   router_logits [M, E]; correction_bias [E], where the model has one
//
//   topk_ids, topk_weights [M, top_k], in order of falling score. With `shared_experts` =
//   `appended` the model's shared experts follow in every row, ids E, E + 1, ..., at weight 1, for
//   layers that hold them as experts like the others.
//
// Equal scores go to the lower id. Scores that differ by less than what fp32 rounds may stand in
// either order, and where the last one chosen lies so near to another, either is right.
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/dtype.h"
#include "reference/inputs/routing_law.h"
#include "reference/ops/judging.h"

namespace moegauge {
namespace {

// Relative to a score and 1: a few roundings of an fp32 sigmoid, bias added.
constexpr double kNear = 0x1p-19;

double near(double score) {
  return std::isfinite(score) ? kNear * std::max(1.0, std::fabs(score)) : 0;
}

// Whether one token's choice is right, and of which weights.
class TokenTruth {
 public:
  TokenTruth(const Router& router, std::span<const float> logits, std::span<const float> bias)
      : router_(router),
        logits_(logits),
        bias_(bias),
        scores_(routing_scores(router, logits, bias)) {
    size_ = static_cast<std::int32_t>(scores_.experts.size() / scores_.groups.size());
    place_groups();
  }

  // Why these ids are not what the rule chooses; nothing if they are.
  std::optional<std::string> wrong(std::span<const std::int32_t> ids) const {
    std::vector<bool> taken(scores_.experts.size());
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= router_.experts) return "id " + std::to_string(id) + " is no expert";
      if (taken[at(id)]) return "expert " + std::to_string(id) + " stands twice";
      if (group(id) == Group::out) {
        return "expert " + std::to_string(id) + " is of a group that is not chosen";
      }
      taken[at(id)] = true;
    }
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      if (before(ids[t + 1], ids[t])) {
        return "expert " + std::to_string(ids[t + 1]) + " comes after " + std::to_string(ids[t]);
      }
    }
    for (std::int32_t e = 0; e < router_.experts; ++e) {
      if (taken[at(e)] || !stands_for_choice(e, ids) || !before(e, ids.back())) continue;
      return "expert " + std::to_string(e) + " is left out for " + std::to_string(ids.back());
    }
    return std::nullopt;
  }

  std::vector<double> weights(std::span<const std::int32_t> ids) const {
    return routing_weights(router_, logits_, ids);
  }

 private:
  // `open`: its score is so near to the last chosen one that either choice is right.
  enum class Group : std::uint8_t { in, open, out };

  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }
  Group group(std::int32_t id) const { return groups_[at(id / size_)]; }

  void place_groups() {
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t g = 0; g < scores_.groups.size(); ++g) {
      if (scores_.chosen_groups[g]) lowest = std::min(lowest, scores_.groups[g]);
    }
    for (std::size_t g = 0; g < scores_.groups.size(); ++g) {
      groups_.push_back(scores_.chosen_groups[g] ? Group::in : Group::out);
      const double score = scores_.groups[g];
      const bool close = score != lowest && std::fabs(score - lowest) <= 2 * near(lowest);
      if (close && !scores_.chosen_groups[g]) nearly_chosen_ = true;
      if (close) groups_.back() = Group::open;
    }
    if (!nearly_chosen_) {  // then nothing is open
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        groups_[g] = scores_.chosen_groups[g] ? Group::in : Group::out;
      }
      return;
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (scores_.chosen_groups[g] && scores_.groups[g] == lowest) groups_[g] = Group::open;
    }
  }

  // An expert of an open group has a claim only where the ids show that its group was chosen.
  bool stands_for_choice(std::int32_t e, std::span<const std::int32_t> ids) const {
    if (group(e) != Group::open) return group(e) == Group::in;
    return std::ranges::any_of(ids, [&](std::int32_t id) { return id / size_ == e / size_; });
  }

  // Whether a surely comes before b.
  bool before(std::int32_t a, std::int32_t b) const {
    const double sa = scores_.experts[at(a)], sb = scores_.experts[at(b)];
    if (sa == sb) return same(a, b) && a < b;
    return sa > sb + near(sb);
  }
  // Equal scores from equal inputs: no rounding tells them apart.
  bool same(std::int32_t a, std::int32_t b) const {
    if (std::isinf(scores_.experts[at(a)])) return true;
    return logits_[at(a)] == logits_[at(b)] && (bias_.empty() || bias_[at(a)] == bias_[at(b)]);
  }

  const Router& router_;
  std::span<const float> logits_, bias_;
  RoutingScores scores_;
  std::vector<Group> groups_;
  std::int32_t size_ = 1;  // experts of a group
  bool nearly_chosen_ = false;
};

class RouteTruth final : public OpTruth {
 public:
  RouteTruth(Router router, Tensor logits, const Tensor* bias)
      : router_(router), logits_(std::move(logits)), bias_(bias ? *bias : Tensor()) {}

  std::vector<Tensor> answers() const override {
    const auto logits = logits_.as<float>();
    const std::int64_t tokens = std::ssize(logits) / router_.experts;
    const RoutedTokens routed = route(router_, logits, tokens, bias_.as<float>());
    std::vector<Tensor> all = {
        Tensor({"emulated_topk_ids", TensorType::int32, {tokens, router_.slots()}}),
        Tensor({"emulated_topk_weights", TensorType::fp32, {tokens, router_.slots()}})};
    std::ranges::copy(routed.topk_ids, all[0].as<std::int32_t>().begin());
    std::ranges::copy(routed.topk_weights, all[1].as<float>().begin());
    return all;
  }

  OpErrors judge(std::span<const Tensor> outputs) const override {
    const auto slots = static_cast<std::size_t>(router_.slots());
    const auto experts = static_cast<std::size_t>(router_.experts);
    const auto top_k = static_cast<std::size_t>(router_.top_k);
    const auto ids = outputs[0].as<std::int32_t>();
    EntryCount count;
    std::vector<double> right;
    for (std::size_t m = 0; m * slots < ids.size(); ++m) {
      const auto logits = logits_.as<float>().subspan(m * experts, experts);
      const TokenTruth token(router_, logits, bias_.as<float>());
      const auto row = ids.subspan(m * slots, slots);
      auto wrong = token.wrong(row.first(top_k));
      if (!wrong) wrong = wrong_shared(row);
      count.expect(!wrong, static_cast<std::int64_t>(m * slots),
                   [&] { return "topk_ids of token " + std::to_string(m) + ": " + *wrong; });
      const auto weights = wrong ? std::vector<double>(top_k) : token.weights(row.first(top_k));
      right.insert(right.end(), weights.begin(), weights.end());
      right.insert(right.end(), static_cast<std::size_t>(router_.shared_experts), 1.0);
    }
    return errors(count, decoded(outputs[1]), right);
  }

 private:
  // Weights are fp32 results of an exponential, a sum and a division.
  static constexpr ErrorLimits kLimits = {.relative_l2 = 1e-5, .worst_token = 1e-5};

  std::optional<std::string> wrong_shared(std::span<const std::int32_t> row) const {
    for (std::int64_t s = 0; s < router_.shared_experts; ++s) {
      const std::int32_t id = row[static_cast<std::size_t>(router_.top_k + s)];
      if (id == router_.experts + s) continue;
      return "id " + std::to_string(id) + " where shared expert " +
             std::to_string(router_.experts + s) + " belongs";
    }
    return std::nullopt;
  }

  OpErrors errors(const EntryCount& count, const std::vector<double>& weights,
                  const std::vector<double>& right) const {
    std::vector<double> magnitude = right;
    for (double& value : magnitude) value = std::fabs(value);
    OpErrors errors;
    errors.implementation =
        measure_error(weights, right, magnitude, std::ssize(weights) / router_.slots(),
                      router_.slots(), {}, Dtype::bf16);
    errors.implementation.matched = count.metrics().matched;  // tokens with the right experts
    errors.total = errors.implementation;
    errors.quantization_of = "nothing is quantised";
    errors.wrong = count.sentence();
    if (!errors.wrong) errors.wrong = beyond(errors.implementation, kLimits);
    return errors;
  }

  const Router router_;
  const Tensor logits_, bias_;
};

class Route final : public Op {
 public:
  std::string_view name() const override { return "route"; }
  std::vector<OpField> fields() const override {
    return {{.name = "shared_experts",
             .words = {"separate", "appended"},
             .fallback = std::string("separate")}};
  }

  std::optional<std::string> describe(OpProblem& p) const override {
    if (p.word("shared_experts") == "separate") {
      p.router.shared_experts = 0;
    } else if (p.router.shared_experts == 0) {
      return "this model has no shared experts to append";
    }
    p.inputs = {{"router_logits", TensorType::fp32, {p.tokens, p.router.experts}}};
    if (p.correction_bias) {
      p.inputs.push_back({"correction_bias", TensorType::fp32, {p.router.experts}});
    }
    p.outputs = {{"topk_ids", TensorType::int32, {p.tokens, p.router.slots()}},
                 {"topk_weights", TensorType::fp32, {p.tokens, p.router.slots()}}};
    return std::nullopt;
  }

  void infer(const GivenTensors& given, OpProblem& p) const override {
    p.tokens = given.extent("router_logits", 2, 0, p.tokens);
    p.layer.experts =
        given.extent("router_logits", 2, 1, given.extent("correction_bias", 1, 0, p.layer.experts));
    // What a dump holds beside the routed ones.
    const std::int64_t slots = given.extent("topk_ids", 2, 1);
    p.router.shared_experts = std::max<std::int64_t>(slots - p.layer.top_k, 1);
    ignore_sizes({&p.layer.hidden_size, &p.layer.intermediate_size});
  }

  // The routing law speaks through the logits: experts that it draws for a token are raised.
  std::vector<Tensor> draw_inputs(const OpProblem& p, const OpDraw& draw) const override {
    constexpr float kRaise = 4;
    auto inputs = make_tensors(p.inputs);
    const auto logits = inputs[0].as<float>();
    fill(p, draw, p.tokens, logits);
    const auto ids = draw_ids(p.layer, draw.law, p.tokens, draw.seed, draw.stream);
    for (std::size_t pair = 0; pair < ids.size(); ++pair) {
      const auto token = static_cast<std::int64_t>(pair) / p.layer.top_k;
      if (ids[pair] >= 0)
        logits[static_cast<std::size_t>(token * p.router.experts + ids[pair])] += kRaise;
    }
    if (draw.distribution == Distribution::degenerate) degrade(p, logits);
    if (inputs.size() > 1) {
      OpDraw other = draw;
      other.stream = ~draw.stream;
      other.distribution = Distribution::gaussian;
      fill(p, other, 1, inputs[1].as<float>());
      for (float& bias : inputs[1].as<float>()) bias *= 0.1f;
    }
    return inputs;
  }

  OpWork work(const OpProblem& p, std::span<const Tensor>) const override {
    return {.operand_bytes = bytes_of(p.inputs) + bytes_of(p.outputs)};
  }

  std::unique_ptr<const OpTruth> truth(const OpProblem& p, std::span<const Tensor>,
                                       std::span<const Tensor> inputs, const OpDraw*,
                                       int) const override {
    const Tensor& logits = tensor_named(inputs, "router_logits");
    const Tensor* bias = find_tensor(inputs, "correction_bias");
    // Refuses numbers that do not fit together.
    route(p.router, {}, 0, bias != nullptr ? bias->as<float>() : std::span<const float>());
    return std::make_unique<RouteTruth>(p.router, logits, bias);
  }

 private:
  static void fill(const OpProblem& p, const OpDraw& draw, std::int64_t rows,
                   std::span<float> out) {
    const auto bits = draw_rows(p, draw, rows, p.router.experts);
    for (std::size_t i = 0; i < bits.size(); ++i) out[i] = to_float(p.layer.dtype, bits[i]);
  }

  // Tokens in turn: as drawn, all -infinity, some NaN, some +infinity, all equal.
  static void degrade(const OpProblem& p, std::span<float> logits) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const auto experts = static_cast<std::size_t>(p.router.experts);
    for (std::size_t m = 0; m < static_cast<std::size_t>(p.tokens); ++m) {
      const auto row = logits.subspan(m * experts, experts);
      if (m % 5 == 1) std::ranges::fill(row, -kInfinity);
      if (m % 5 == 4) std::ranges::fill(row, row.front());
      for (std::size_t e = m % 7; e < experts; e += 7) {
        if (m % 5 == 2) row[e] = std::numeric_limits<float>::quiet_NaN();
        if (m % 5 == 3 && e % 3 == 0) row[e] = kInfinity;
      }
    }
  }
};

}  // namespace

const Op& route_op() {
  static const Route op;
  return op;
}

}  // namespace moegauge
