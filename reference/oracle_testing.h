// For the oracle's tests: small expert sources, and the layer a second time in long double, written
// as its definition reads, one pair and one sum at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <utility>

#include "reference/oracle.h"
#include "reference/schemes/scheme_testing.h"

namespace moegauge::testing_support {

// Holds all experts. w13 [E, 2N, K] and w2 [E, K, N] by expert.
class HeldExperts : public ExpertSource {
 public:
  HeldExperts(const Layer& layer, const Scheme& scheme, std::vector<std::vector<float>> w13,
              std::vector<std::vector<float>> w2)
      : layer_(layer), scheme_(scheme), w13_(std::move(w13)), w2_(std::move(w2)) {}

  // Random ones whose products keep the variance of x, K * var = 1.
  static HeldExperts random(const Layer& layer, const Scheme& scheme, unsigned seed) {
    std::vector<std::vector<float>> w13, w2;
    for (std::int64_t e = 0; e < layer.local_experts(); ++e) {
      const auto scaled = [&](Role role, std::int64_t fan_in) {
        const MatrixShape shape = weight_shape(layer, role);
        auto w = random_values(shape.rows * shape.cols,
                               seed + static_cast<unsigned>(2 * e) + (role == Role::w2 ? 1u : 0u));
        const double factor = 1 / std::sqrt(static_cast<double>(fan_in));
        for (float& v : w) v = round_to(layer.dtype, static_cast<float>(v * factor));
        return w;
      };
      w13.push_back(scaled(Role::w13, layer.hidden_size));
      w2.push_back(scaled(Role::w2, layer.intermediate_size));
    }
    return {layer, scheme, std::move(w13), std::move(w2)};
  }

  const std::vector<float>& weights(std::int64_t expert, Role role) const {
    return (role == Role::w13 ? w13_ : w2_)[static_cast<std::size_t>(expert)];
  }
  void quantized(std::int64_t expert, const Matrix& out) const override {
    note(expert);
    scheme_.quantize_weight(weights(expert, out.shape.role), out);
  }
  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t end,
                std::span<float> out) const override {
    note(expert, end - begin);
    const auto& w = weights(expert, shape.role);
    std::copy(w.begin() + begin * shape.cols, w.begin() + end * shape.cols, out.begin());
  }
  std::vector<float> bias(std::int64_t expert, Role role) const override {
    if (!layer_.expert_bias) return {};
    return random_values(weight_shape(layer_, role).rows, 900 + static_cast<unsigned>(expert));
  }
  float activation_scale(Role role) const override { return role == Role::w13 ? 0.01f : 0.03f; }

  std::set<std::int64_t> asked() const { return asked_; }
  // Most rows asked for in full precision at a time.
  std::int64_t most_rows() const { return most_rows_; }

 private:
  void note(std::int64_t expert, std::int64_t rows = 0) const {
    const std::scoped_lock lock(mutex_);
    asked_.insert(expert);
    most_rows_ = std::max(most_rows_, rows);
  }

  Layer layer_;
  const Scheme& scheme_;
  std::vector<std::vector<float>> w13_, w2_;
  mutable std::mutex mutex_;
  mutable std::set<std::int64_t> asked_;
  mutable std::int64_t most_rows_ = 0;
};

struct HeldInputs {
  std::int64_t tokens = 0;
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  LayerInputs view() const { return {tokens, x, ids, weights}; }

  // Ids anywhere in [-1, experts), so that pairs are dropped and repeated.
  static HeldInputs random(const Layer& layer, std::int64_t tokens, unsigned seed) {
    HeldInputs in = {.tokens = tokens, .x = {}, .ids = {}, .weights = {}};
    for (const float v : random_values(tokens * layer.hidden_size, seed)) {
      in.x.push_back(to_bits(layer.dtype, v));
    }
    std::mt19937_64 engine(seed + 1);
    for (std::int64_t i = 0; i < tokens * layer.top_k; ++i) {
      in.ids.push_back(
          static_cast<std::int32_t>(engine() % static_cast<std::uint64_t>(layer.experts + 1)) - 1);
      in.weights.push_back(static_cast<float>(engine() % 1000 + 1) / 1000.0f);
    }
    return in;
  }
};

// Round to nearest even with `digits` significant bits and smallest normal exponent `emin` (of 2 in
// [1, 2)), by scaling to integers; independent of the formats under reference/formats.
inline long double round_bits(long double v, int digits, int emin) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int exponent = std::max(std::ilogb(v), emin);
  const int shift = digits - 1 - exponent;
  return std::ldexp(std::nearbyint(std::ldexp(v, shift)), -shift);
}
inline long double round_half(Dtype dtype, long double v) {
  return dtype == Dtype::bf16 ? round_bits(v, 8, -126) : round_bits(v, 11, -14);
}
inline long double round_at(Precision precision, Dtype dtype, long double v) {
  return precision == Precision::fp32 ? round_bits(v, 24, -126) : round_half(dtype, v);
}

inline long double naive_activation(const Activation& a, long double g, long double u) {
  const auto sigmoid = [](long double z) { return 1 / (1 + std::exp(-z)); };
  switch (a.kind) {
    case ActivationKind::silu_and_mul:
      return g * sigmoid(g) * u;
    case ActivationKind::gelu_and_mul:
      return g / 2 * std::erfc(-g / std::sqrt(2.0L)) * u;
    case ActivationKind::gelu_tanh_and_mul:
      return g / 2 *
             (1 + std::tanh(std::sqrt(2 / std::acos(-1.0L)) * (g + 0.044715L * g * g * g))) * u;
    case ActivationKind::swiglu_clamped: {
      const long double limit = a.limit;
      g = std::min(g, limit);
      u = std::min(std::max(u, -limit), limit);
      return (u + a.beta) * g * sigmoid(a.alpha * g);
    }
  }
  return 0;
}

struct NaiveCase {
  const Layer& layer;
  const Scheme& scheme;
  const Numerics& numerics;
  const HeldExperts& experts;
  const HeldInputs& in;
};

// What a pair adds to y before rounding to the output: gate/up, activation, second product.
class NaiveLayer {
 public:
  explicit NaiveLayer(const NaiveCase& c)
      : c_(c), k_(c.layer.hidden_size), n_(c.layer.intermediate_size) {
    for (std::size_t i = 0; i < c.in.ids.size(); ++i) {
      if (c.layer.local_id(c.in.ids[i]) >= 0) pairs_.push_back(i);
    }
  }

  Truth compute() {
    const auto size = static_cast<std::size_t>(c_.in.tokens * k_);
    Truth truth = {.tokens = c_.in.tokens,
                   .hidden_size = k_,
                   .emulated = {},
                   .unquantized = {},
                   .magnitude = {}};
    for (const bool quantized : {true, false}) {
      std::vector<long double> y(size), magnitude(size);
      const auto x = input(quantized);
      std::vector<long double> h;
      for (const std::size_t pair : pairs_) first(x, pair, quantized, h);
      h = second_operand(std::move(h), quantized);
      for (std::size_t p = 0; p < pairs_.size(); ++p) second(h, p, quantized, y, magnitude);
      for (std::size_t i = 0; i < size; ++i) {
        if (quantized) {
          truth.emulated.push_back(static_cast<double>(round_half(c_.layer.dtype, y[i])));
          truth.magnitude.push_back(static_cast<double>(magnitude[i]));
        } else {
          truth.unquantized.push_back(static_cast<double>(y[i]));
        }
      }
    }
    return truth;
  }

 private:
  using Values = std::vector<long double>;

  Values emulate(const std::vector<float>& in, std::int64_t cols, Role role) const {
    std::vector<double> out(in.size());
    if (in.empty()) return {};
    c_.scheme.emulate_activation(in,
                                 {.rows = static_cast<std::int64_t>(in.size()) / cols,
                                  .cols = cols,
                                  .dtype = c_.layer.dtype,
                                  .static_scale = c_.experts.activation_scale(role)},
                                 out);
    return {out.begin(), out.end()};
  }

  Values input(bool quantized) const {
    Values x;
    for (std::size_t i = 0; i < c_.in.x.size(); ++i) {
      long double v = to_float(c_.layer.dtype, c_.in.x[i]);
      if (quantized && weight_at_x()) {
        v = round_half(c_.layer.dtype, v * c_.in.weights[i / static_cast<std::size_t>(k_)]);
      }
      x.push_back(v);
    }
    return quantized ? emulate({x.begin(), x.end()}, k_, Role::w13) : x;
  }

  bool weight_at_x() const {
    return c_.layer.router_weight_on_input && c_.numerics.weight_on_input == WeightOnInput::x;
  }

  std::vector<double> weights(std::int64_t expert, Role role, bool quantized) const {
    const auto& w = c_.experts.weights(expert, role);
    if (!quantized) return {w.begin(), w.end()};
    return dequantize(c_.scheme, quantize(c_.scheme, weight_shape(c_.layer, role), w));
  }

  void first(const Values& x, std::size_t pair, bool quantized, Values& h) const {
    const std::int64_t expert = c_.layer.local_id(c_.in.ids[pair]);
    const auto w = weights(expert, Role::w13, quantized);
    const auto bias = c_.experts.bias(expert, Role::w13);
    const auto token = static_cast<std::int64_t>(pair) / c_.layer.top_k;
    const bool weighted = c_.layer.router_weight_on_input && !(quantized && weight_at_x());
    const auto row_value = [&](std::int64_t row) {
      long double sum = 0;
      for (std::int64_t k = 0; k < k_; ++k) {
        sum +=
            x[static_cast<std::size_t>(token * k_ + k)] * w[static_cast<std::size_t>(row * k_ + k)];
      }
      if (!bias.empty()) sum += bias[static_cast<std::size_t>(row)];
      if (weighted) sum *= c_.in.weights[pair];
      return quantized ? round_at(c_.numerics.gemm1_out, c_.layer.dtype, sum) : sum;
    };
    for (std::int64_t n = 0; n < n_; ++n) {
      const bool interleaved = c_.layer.gate_up_order == GateUpOrder::interleaved;
      const long double gate = row_value(interleaved ? 2 * n : n);
      const long double up = row_value(interleaved ? 2 * n + 1 : n_ + n);
      const long double value = naive_activation(c_.layer.activation, gate, up);
      h.push_back(quantized ? round_at(c_.numerics.act_out, c_.layer.dtype, value) : value);
    }
  }

  Values second_operand(Values h, bool quantized) const {
    return quantized ? emulate({h.begin(), h.end()}, n_, Role::w2) : h;
  }

  void second(const Values& h, std::size_t p, bool quantized, Values& y, Values& magnitude) const {
    const std::size_t pair = pairs_[p];
    const std::int64_t expert = c_.layer.local_id(c_.in.ids[pair]);
    const auto w = weights(expert, Role::w2, quantized);
    auto bias = c_.experts.bias(expert, Role::w2);
    if (!c_.layer.adds_w2_bias) bias.clear();
    const auto token = static_cast<std::int64_t>(pair) / c_.layer.top_k;
    const long double weight = c_.layer.router_weight_on_input ? 1.0L : c_.in.weights[pair];
    for (std::int64_t k = 0; k < k_; ++k) {
      long double sum = 0, absolute = 0;
      for (std::int64_t n = 0; n < n_; ++n) {
        const long double product =
            h[p * static_cast<std::size_t>(n_) + static_cast<std::size_t>(n)] *
            w[static_cast<std::size_t>(k * n_ + n)];
        sum += product;
        absolute += std::fabs(product);
      }
      if (!bias.empty()) {
        sum += bias[static_cast<std::size_t>(k)];
        absolute += std::fabs(bias[static_cast<std::size_t>(k)]);
      }
      const auto to = static_cast<std::size_t>(token * k_ + k);
      const long double out = sum * weight;
      y[to] += quantized ? round_at(c_.numerics.pair_out, c_.layer.dtype, out) : out;
      magnitude[to] += absolute * std::fabs(weight);
    }
  }

  const NaiveCase& c_;
  std::int64_t k_, n_;
  std::vector<std::size_t> pairs_;  // flat indices of pairs of this rank
};

inline Truth truth_of(const Layer& layer, const Scheme& scheme, const HeldExperts& experts,
                      const HeldInputs& in, const Numerics& numerics = {}, int threads = 2) {
  return compute_truth(layer, scheme, numerics, experts, in.view(), threads);
}

inline Layer layer_of(std::int64_t experts, std::int64_t top_k, std::int64_t k, std::int64_t n) {
  return {.experts = experts, .top_k = top_k, .hidden_size = k, .intermediate_size = n};
}

inline Layer with(Layer layer, auto change) {
  change(layer);
  return layer;
}

// K = 2, N = 2, two experts. silu(40) is 40 to the last bit of a double (1 + e^-40 rounds to 1).
//   expert 0: gate = (40 x0, 20 x1), up = (x0, x1), w2 = [[1, 1/2], [0, 1]]
//   expert 1: gate = (40 x0, 20 x1), up = (x1, x0), w2 = [[1, 0], [0, 1]]
// x = (1, 2): gate = (40, 40). Expert 0: h = (40, 80), y = (80, 80). Expert 1: h = (80, 40) = y.
struct ByHand {
  Layer layer = {.experts = 2, .top_k = 2, .hidden_size = 2, .intermediate_size = 2};
  std::unique_ptr<const Scheme> scheme = make_scheme("bf16");
  HeldExperts experts = {layer,
                         *scheme,
                         {{40, 0, 0, 20, 1, 0, 0, 1}, {40, 0, 0, 20, 0, 1, 1, 0}},
                         {{1, 0.5f, 0, 1}, {1, 0, 0, 1}}};
  HeldInputs in = {.tokens = 1,
                   .x = {to_bits(Dtype::bf16, 1.0f), to_bits(Dtype::bf16, 2.0f)},
                   .ids = {0, 1},
                   .weights = {0.5f, 0.25f}};
  Truth truth() { return truth_of(layer, *scheme, experts, in); }
};

}  // namespace moegauge::testing_support
