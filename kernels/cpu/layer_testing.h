// For the tests of this folder: experts with random weights, and the layer worked out in a plain
// fp64 loop from the scheme's own dequantised operands, independent of the kernels and of the
// Eigen oracle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "reference/dtype.h"
#include "reference/schemes/matrix_storage.h"
#include "reference/schemes/scheme.h"

namespace moegauge::testing_support {

inline std::vector<float> random_floats(std::int64_t n, std::uint64_t seed, double deviation) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = static_cast<float>(normal(engine));
  return values;
}

// Weights whose 32x32 patches differ by powers of two, so that a neighbour's scale is a wrong one.
class RandomExperts final : public ExpertSource {
 public:
  RandomExperts(const Layer& layer, std::shared_ptr<const Scheme> scheme, std::uint64_t seed)
      : layer_(layer), scheme_(std::move(scheme)), seed_(seed) {}

  std::vector<float> values(std::int64_t expert, const MatrixShape& shape) const {
    const auto tag = static_cast<std::uint64_t>(2 * expert + (shape.role == Role::w2 ? 1 : 0));
    std::vector<float> w = random_floats(shape.rows * shape.cols, seed_ * 1000 + tag,
                                         1 / std::sqrt(static_cast<double>(shape.cols)));
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      for (std::int64_t c = 0; c < shape.cols; ++c) {
        float& v = w[static_cast<std::size_t>(r * shape.cols + c)];
        const int patch = static_cast<int>((r / 32 * 7 + c / 32 * 3) % 5) - 2;
        v = round_to(layer_.dtype, std::ldexp(v, patch));
      }
    }
    return w;
  }

  void quantized(std::int64_t expert, const Matrix& out) const override {
    scheme_->quantize_weight(values(expert, out.shape), out);
  }
  void original(std::int64_t expert, const MatrixShape& shape, std::int64_t begin, std::int64_t end,
                std::span<float> out) const override {
    const std::vector<float> all = values(expert, shape);
    std::copy(all.begin() + begin * shape.cols, all.begin() + end * shape.cols, out.begin());
  }
  // Some elements of x and h saturate under these.
  float activation_scale(Role role) const override { return role == Role::w13 ? 0.006f : 0.0005f; }
  std::vector<float> bias(std::int64_t expert, Role role) const override {
    if (!layer_.expert_bias) return {};
    return random_floats(weight_shape(layer_, role).rows,
                         seed_ * 77 + static_cast<std::uint64_t>(2 * expert + (role == Role::w2)),
                         0.5);
  }

 private:
  Layer layer_;
  std::shared_ptr<const Scheme> scheme_;
  std::uint64_t seed_;
};

struct TestInputs {
  std::int64_t tokens = 0;
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> topk_ids;
  std::vector<float> topk_weights;
  LayerInputs view() const { return {tokens, x, topk_ids, topk_weights}; }
};

// Distinct random experts per token.
inline TestInputs random_inputs(const Layer& layer, std::int64_t tokens, std::uint64_t seed) {
  TestInputs in;
  in.tokens = tokens;
  for (const float v : random_floats(tokens * layer.hidden_size, seed, 1)) {
    in.x.push_back(to_bits(layer.dtype, v));
  }
  std::mt19937_64 engine(seed + 1);
  std::vector<std::int32_t> experts(static_cast<std::size_t>(layer.experts));
  for (std::size_t e = 0; e < experts.size(); ++e) experts[e] = static_cast<std::int32_t>(e);
  std::uniform_real_distribution<float> weight(0.1f, 1.0f);
  for (std::int64_t m = 0; m < tokens; ++m) {
    std::ranges::shuffle(experts, engine);
    for (std::int64_t t = 0; t < layer.top_k; ++t) {
      in.topk_ids.push_back(experts[static_cast<std::size_t>(t % layer.experts)]);
      in.topk_weights.push_back(weight(engine));
    }
  }
  return in;
}

// Every expert's operands as exact doubles.
struct DoubleExperts {
  std::vector<std::vector<double>> w13, w2;
  std::vector<std::vector<float>> w13_bias, w2_bias;
};

inline DoubleExperts dequantize_all(const Layer& layer, const Scheme& scheme,
                                    const ExpertSource& experts) {
  DoubleExperts d;
  for (std::int64_t e = 0; e < layer.local_experts(); ++e) {
    for (const Role role : {Role::w13, Role::w2}) {
      const MatrixShape shape = weight_shape(layer, role);
      MatrixStorage quantized(scheme, shape);
      experts.quantized(e, quantized.view());
      std::vector<double> out(static_cast<std::size_t>(shape.rows * shape.cols));
      scheme.dequantize_weight(std::as_const(quantized).view(), 0, shape.rows, out);
      (role == Role::w13 ? d.w13 : d.w2).push_back(std::move(out));
      (role == Role::w13 ? d.w13_bias : d.w2_bias).push_back(experts.bias(e, role));
    }
  }
  return d;
}

inline double activation(const Activation& a, double g, double u) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  switch (a.kind) {
    case ActivationKind::silu_and_mul:
      return g * sigmoid(g) * u;
    case ActivationKind::gelu_and_mul:
      return g * 0.5 * std::erfc(-g / std::numbers::sqrt2) * u;
    case ActivationKind::gelu_tanh_and_mul:
      return 0.5 * g *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g))) * u;
    case ActivationKind::swiglu_clamped:
      g = std::min(g, a.limit);
      u = std::clamp(u, -a.limit, a.limit);
      return (u + a.beta) * g * sigmoid(a.alpha * g);
  }
  return 0;
}

// [rows, cols] as the GEMM of `role` sees them: row by row, or all at once where a scale depends on
// all of them.
inline std::vector<std::vector<double>> emulate_rows(const Layer& layer, const Scheme& scheme,
                                                     float static_scale,
                                                     const std::vector<std::vector<float>>& rows) {
  if (rows.empty()) return {};
  const auto cols = static_cast<std::int64_t>(rows[0].size());
  const bool together = scheme.traits().activation.scale != ScaleKind::none &&
                        scheme.traits().activation.unit.rows == 0;
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  std::vector<double> out(all.size());
  const std::size_t step = together ? all.size() : rows[0].size();
  for (std::size_t begin = 0; begin < all.size(); begin += step) {
    scheme.emulate_activation(std::span(all).subspan(begin, step),
                              {.rows = static_cast<std::int64_t>(step) / cols,
                               .cols = cols,
                               .dtype = layer.dtype,
                               .static_scale = static_scale},
                              std::span(out).subspan(begin, step));
  }
  std::vector<std::vector<double>> result;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(r) * cols;
    result.emplace_back(begin, begin + cols);
  }
  return result;
}

inline double dot(const std::vector<double>& w, std::int64_t row, const std::vector<double>& x) {
  double sum = 0;
  const auto cols = static_cast<std::int64_t>(x.size());
  for (std::int64_t c = 0; c < cols; ++c) {
    sum += w[static_cast<std::size_t>(row * cols + c)] * x[static_cast<std::size_t>(c)];
  }
  return sum;
}

// The activation function's output of one pair, rounded as declared.
inline std::vector<float> hidden_row(const Layer& layer, const Numerics& numerics,
                                     const std::vector<double>& w13, const std::vector<float>& bias,
                                     const std::vector<double>& x, float weight) {
  const std::int64_t n = layer.intermediate_size;
  std::vector<float> h;
  for (std::int64_t j = 0; j < n; ++j) {
    const bool interleaved = layer.gate_up_order == GateUpOrder::interleaved;
    const std::int64_t gate_row = interleaved ? 2 * j : j;
    const std::int64_t up_row = interleaved ? 2 * j + 1 : n + j;
    double gate = dot(w13, gate_row, x), up = dot(w13, up_row, x);
    if (layer.expert_bias) {
      gate += bias[static_cast<std::size_t>(gate_row)];
      up += bias[static_cast<std::size_t>(up_row)];
    }
    if (layer.router_weight_on_input) {
      gate *= weight;
      up *= weight;
    }
    const double value = activation(layer.activation, gate, up);
    h.push_back(numerics.act_out == Precision::fp32
                    ? static_cast<float>(value)
                    : static_cast<float>(round_to(layer.dtype, value)));
  }
  return h;
}

// What a perfect kernel with these numerics returns, [tokens, K].
inline std::vector<double> plain_layer(const Layer& layer, const Scheme& scheme,
                                       const Numerics& numerics, const ExpertSource& experts,
                                       const TestInputs& in) {
  const DoubleExperts w = dequantize_all(layer, scheme, experts);
  const std::int64_t k = layer.hidden_size;
  std::vector<std::vector<float>> x(static_cast<std::size_t>(in.tokens)), h;
  for (std::size_t i = 0; i < in.x.size(); ++i) {
    x[i / static_cast<std::size_t>(k)].push_back(to_float(layer.dtype, in.x[i]));
  }
  const auto xq = emulate_rows(layer, scheme, experts.activation_scale(Role::w13), x);
  std::vector<std::size_t> pairs;  // of this rank
  for (std::size_t pair = 0; pair < in.topk_ids.size(); ++pair) {
    const std::int32_t local = layer.local_id(in.topk_ids[pair]);
    if (local < 0) continue;
    const auto e = static_cast<std::size_t>(local);
    pairs.push_back(pair);
    h.push_back(hidden_row(layer, numerics, w.w13[e], w.w13_bias[e],
                           xq[pair / static_cast<std::size_t>(layer.top_k)],
                           in.topk_weights[pair]));
  }
  const auto hq = emulate_rows(layer, scheme, experts.activation_scale(Role::w2), h);
  std::vector<double> y(static_cast<std::size_t>(in.tokens * k));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto e = static_cast<std::size_t>(layer.local_id(in.topk_ids[pairs[i]]));
    const auto token = static_cast<std::int64_t>(pairs[i]) / layer.top_k;
    for (std::int64_t c = 0; c < k; ++c) {
      double out = dot(w.w2[e], c, hq[i]);
      if (layer.expert_bias && layer.adds_w2_bias) out += w.w2_bias[e][static_cast<std::size_t>(c)];
      if (!layer.router_weight_on_input) out *= in.topk_weights[pairs[i]];
      y[static_cast<std::size_t>(token * k + c)] += out;
    }
  }
  for (double& v : y) v = round_to(layer.dtype, v);
  return y;
}

struct Distance {
  double relative_l2 = 0, worst_token = 0;
};

inline Distance distance(const Layer& layer, const std::vector<std::uint16_t>& y,
                         const std::vector<double>& truth) {
  double all_error = 0, all_norm = 0;
  Distance d;
  const auto k = static_cast<std::size_t>(layer.hidden_size);
  for (std::size_t m = 0; m * k < truth.size(); ++m) {
    double error = 0, norm = 0;
    for (std::size_t c = m * k; c < (m + 1) * k; ++c) {
      const double delta = to_float(layer.dtype, y[c]) - truth[c];
      error += delta * delta;
      norm += truth[c] * truth[c];
    }
    if (norm > 0 || error > 0) d.worst_token = std::max(d.worst_token, std::sqrt(error / norm));
    all_error += error;
    all_norm += norm;
  }
  if (all_norm > 0 || all_error > 0) d.relative_l2 = std::sqrt(all_error / all_norm);
  return d;
}

}  // namespace moegauge::testing_support
