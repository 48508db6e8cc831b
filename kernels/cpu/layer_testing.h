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
      const MatrixBytes sizes = scheme.weight_bytes(shape);
      // Whole words, so that parts of any element type are aligned.
      std::vector<std::uint64_t> values(sizes.values / 8 + 1), scales(sizes.scales / 8 + 1);
      Matrix m;
      m.shape = shape;
      m.values = std::as_writable_bytes(std::span(values)).first(sizes.values);
      m.scales = std::as_writable_bytes(std::span(scales)).first(sizes.scales);
      experts.quantized(e, m);
      std::vector<double> out(static_cast<std::size_t>(shape.rows * shape.cols));
      scheme.dequantize_weight({shape, m.values, m.scales, {}, {}}, 0, shape.rows, out);
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

inline std::vector<double> emulate_row(const Layer& layer, const Scheme& scheme,
                                       const std::vector<float>& row) {
  std::vector<double> out(row.size());
  scheme.emulate_activation(
      row, {.rows = 1, .cols = static_cast<std::int64_t>(row.size()), .dtype = layer.dtype}, out);
  return out;
}

inline double dot(const std::vector<double>& w, std::int64_t row, const std::vector<double>& x) {
  double sum = 0;
  const auto cols = static_cast<std::int64_t>(x.size());
  for (std::int64_t c = 0; c < cols; ++c) {
    sum += w[static_cast<std::size_t>(row * cols + c)] * x[static_cast<std::size_t>(c)];
  }
  return sum;
}

// What a perfect kernel with these numerics returns, [tokens, K].
inline std::vector<double> plain_layer(const Layer& layer, const Scheme& scheme,
                                       const Numerics& numerics, const DoubleExperts& w,
                                       const TestInputs& in) {
  const std::int64_t k = layer.hidden_size, n = layer.intermediate_size;
  std::vector<double> y(static_cast<std::size_t>(in.tokens * k));
  for (std::int64_t m = 0; m < in.tokens; ++m) {
    std::vector<float> x;
    for (std::int64_t c = 0; c < k; ++c) {
      x.push_back(to_float(layer.dtype, in.x[static_cast<std::size_t>(m * k + c)]));
    }
    const std::vector<double> xq = emulate_row(layer, scheme, x);
    for (std::int64_t t = 0; t < layer.top_k; ++t) {
      const auto pair = static_cast<std::size_t>(m * layer.top_k + t);
      const std::int32_t local = layer.local_id(in.topk_ids[pair]);
      if (local < 0) continue;
      const auto e = static_cast<std::size_t>(local);
      std::vector<float> h;
      for (std::int64_t j = 0; j < n; ++j) {
        const bool interleaved = layer.gate_up_order == GateUpOrder::interleaved;
        const std::int64_t gate_row = interleaved ? 2 * j : j;
        const std::int64_t up_row = interleaved ? 2 * j + 1 : n + j;
        double gate = dot(w.w13[e], gate_row, xq), up = dot(w.w13[e], up_row, xq);
        if (layer.expert_bias) {
          gate += w.w13_bias[e][static_cast<std::size_t>(gate_row)];
          up += w.w13_bias[e][static_cast<std::size_t>(up_row)];
        }
        if (layer.router_weight_on_input) {
          gate *= in.topk_weights[pair];
          up *= in.topk_weights[pair];
        }
        const double value = activation(layer.activation, gate, up);
        h.push_back(numerics.act_out == Precision::fp32
                        ? static_cast<float>(value)
                        : static_cast<float>(round_to(layer.dtype, value)));
      }
      const std::vector<double> hq = emulate_row(layer, scheme, h);
      for (std::int64_t c = 0; c < k; ++c) {
        double out = dot(w.w2[e], c, hq);
        if (layer.expert_bias && layer.adds_w2_bias) {
          out += w.w2_bias[e][static_cast<std::size_t>(c)];
        }
        if (!layer.router_weight_on_input) out *= in.topk_weights[pair];
        y[static_cast<std::size_t>(m * k + c)] += out;
      }
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
