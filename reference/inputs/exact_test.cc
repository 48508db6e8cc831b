// The claim of exact.h, tried on kernels that differ in all that a correct kernel may choose: the
// order of sums, their lanes, and where values are rounded.
#include "reference/inputs/exact.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "reference/base/input_error.h"
#include "reference/dtype.h"
#include "reference/oracle.h"

namespace moegauge {
namespace {

constexpr std::uint64_t kSeed = 21;
constexpr std::int64_t kTokens = 4;

struct Case {
  std::string scheme;
  Layer layer;
  int unit_spread = 0;
};

std::vector<Case> cases() {
  const Layer base = {.experts = 3, .top_k = 2, .hidden_size = 256, .intermediate_size = 192};
  std::vector<Case> all;
  for (const auto* scheme :
       {"bf16", "fp8_tensor", "fp8_tensor_static", "fp8_tensor_static_fnuz", "fp8_ptpc",
        "fp8_block", "fp8_block_fnuz", "fp8_block_fnuz224", "mxfp8", "mxfp8_floor", "w8a8_int8",
        "w4a16_g32", "w4a16_g128_zp", "w8a16_g64", "w8a16_g128_zp", "mxfp4"}) {
    all.push_back({scheme, base, 2});
  }
  all.push_back({"fp8_block", base, 0});
  const auto add = [&](auto change, int spread = 2) {
    Layer layer = base;
    change(layer);
    for (const auto* scheme : {"fp8_block", "bf16"}) all.push_back({scheme, layer, spread});
  };
  // Ragged sizes, odd ones included.
  for (const auto& [k, n] : {std::pair{1344, 80}, {80, 64}, {129, 259}, {8, 8}, {130, 131}}) {
    add([k = k, n = n](Layer& l) { l.hidden_size = k, l.intermediate_size = n; });
  }
  for (const int top_k : {1, 3, 8, 16, 32, 64}) {
    add([=](Layer& l) {
      l.experts = top_k + 1, l.top_k = top_k, l.hidden_size = 96, l.intermediate_size = 64;
    });
  }
  add([](Layer& l) { l.expert_bias = true; });
  add([](Layer& l) { l.expert_bias = true, l.hidden_size = 64, l.top_k = 32, l.experts = 33; });
  add([](Layer& l) { l.router_weight_on_input = true, l.top_k = 1; });
  add([](Layer& l) { l.gate_up_order = GateUpOrder::interleaved; });
  add([](Layer& l) { l.activation.kind = ActivationKind::gelu_and_mul; });
  add([](Layer& l) { l.expert_map = {0, -1, 1}; });
  for (const auto* scheme : {"fp16", "fp8_block", "w8a8_int8"}) {
    Layer layer = base;
    layer.dtype = Dtype::fp16;
    all.push_back({scheme, layer, 2});
    layer.router_weight_on_input = true;
    layer.top_k = 1;
    all.push_back({scheme, layer, 2});
  }
  return all;
}

// How a kernel sums: which index comes i-th, and into how many accumulators.
struct Order {
  bool backward = false;
  std::size_t lanes = 1;
};

float dot(const float* a, const float* b, std::size_t n, const Order& order) {
  std::vector<float> lanes(order.lanes, 0.0f);
  for (std::size_t i = 0, lane = 0; i < n; ++i, lane = lane + 1 == order.lanes ? 0 : lane + 1) {
    const std::size_t at = order.backward ? n - 1 - i : i;
    lanes[lane] += a[at] * b[at];
  }
  return std::accumulate(lanes.begin(), lanes.end(), 0.0f);
}

class Fixture {
 public:
  explicit Fixture(const Case& c)
      : layer(c.layer),
        scheme(make_scheme(c.scheme)),
        experts(generated_experts(layer, scheme, Distribution::exact, kSeed, c.unit_spread)),
        inputs(generate_inputs(layer, Distribution::exact, {}, kTokens, kSeed, 0, scheme.get())) {
    for (const auto bits : inputs.x) x.push_back(to_float(layer.dtype, bits));
    for (std::int64_t e = 0; e < layer.local_experts(); ++e) {
      w13.push_back(weights(e, Role::w13));
      w2.push_back(weights(e, Role::w2));
    }
  }

  std::vector<float> weights(std::int64_t expert, Role role) const {
    const MatrixShape shape = weight_shape(layer, role);
    std::vector<float> w(static_cast<std::size_t>(shape.rows * shape.cols));
    experts->original(expert, shape, 0, shape.rows, w);
    return w;
  }

  float rounded(Precision precision, float v) const {
    return precision == Precision::fp32 ? v : round_to(layer.dtype, v);
  }

  // h of one token and expert in fp32; `weight` multiplies the first GEMM's side.
  std::vector<float> hidden(const float* row, std::size_t e, float weight, const Numerics& numerics,
                            const Order& order) const {
    const auto k = static_cast<std::size_t>(layer.hidden_size);
    const auto n = static_cast<std::size_t>(layer.intermediate_size);
    const auto bias = experts->bias(static_cast<std::int64_t>(e), Role::w13);
    std::vector<float> h(n);
    for (std::size_t i = 0; i < n; ++i) {
      const bool concatenated = layer.gate_up_order == GateUpOrder::concatenated;
      const std::size_t at[2] = {concatenated ? i : 2 * i, concatenated ? n + i : 2 * i + 1};
      float gu[2];
      for (int s = 0; s < 2; ++s) {
        const float sum = dot(row, &w13[e][at[s] * k], k, order) * weight;
        gu[s] = rounded(numerics.gemm1_out, sum + (bias.empty() ? 0.0f : bias[at[s]]));
      }
      h[i] = rounded(numerics.act_out, activate(gu[0]) * gu[1]);
    }
    return h;
  }

  float activate(float g) const {
    if (layer.activation.kind == ActivationKind::silu_and_mul) return g / (1 + std::exp(-g));
    return 0.5f * g * (1 + std::erf(g / std::sqrt(2.0f)));
  }

  std::vector<double> kernel(const Numerics& numerics, const Order& order) const {
    const auto k = static_cast<std::size_t>(layer.hidden_size);
    const auto n = static_cast<std::size_t>(layer.intermediate_size);
    const auto top_k = static_cast<std::size_t>(layer.top_k);
    std::vector<float> y(kTokens * k, 0.0f);
    for (std::size_t pair = 0; pair < kTokens * top_k; ++pair) {
      const std::int32_t local = layer.local_id(inputs.topk_ids[pair]);
      if (local < 0) continue;
      const auto e = static_cast<std::size_t>(local);
      const float weight = inputs.topk_weights[pair];
      const float before = layer.router_weight_on_input ? weight : 1;
      const auto h = hidden(&x[pair / top_k * k], e, before, numerics, order);
      const auto bias = experts->bias(local, Role::w2);
      for (std::size_t r = 0; r < k; ++r) {
        const float sum = dot(h.data(), &w2[e][r * n], n, order) + (bias.empty() ? 0.0f : bias[r]);
        y[pair / top_k * k + r] +=
            rounded(numerics.pair_out, layer.router_weight_on_input ? sum : sum * weight);
      }
    }
    std::vector<double> out;
    for (const float v : y) out.push_back(round_to(layer.dtype, v));
    return out;
  }

  Layer layer;
  std::shared_ptr<const Scheme> scheme;
  std::unique_ptr<ExpertSource> experts;
  OwnedInputs inputs;
  std::vector<float> x;
  std::vector<std::vector<float>> w13, w2;
};

const Numerics kNumerics[] = {
    {},
    {.gemm1_out = Precision::activation_dtype},
    {.act_out = Precision::activation_dtype},
    {.gemm1_out = Precision::activation_dtype,
     .act_out = Precision::activation_dtype,
     .pair_out = Precision::activation_dtype},
};

class ExactInputs : public testing::TestWithParam<std::size_t> {
 protected:
  static std::string describe(const Case& c) {
    return c.scheme + " K=" + std::to_string(c.layer.hidden_size) +
           " N=" + std::to_string(c.layer.intermediate_size) +
           " top_k=" + std::to_string(c.layer.top_k) + " spread=" + std::to_string(c.unit_spread);
  }
};
INSTANTIATE_TEST_SUITE_P(Cases, ExactInputs, testing::Range<std::size_t>(0, cases().size()));

TEST_P(ExactInputs, EveryOrderAndRoundingGivesTheOraclesBits) {
  const Case c = cases().at(GetParam());
  SCOPED_TRACE(describe(c));
  const Fixture f(c);
  Order order;
  for (const Numerics& numerics : kNumerics) {
    Numerics on_x = numerics;
    on_x.weight_on_input = WeightOnInput::x;
    const Truth truth = compute_truth(f.layer, *f.scheme, numerics, *f.experts, f.inputs.view(), 1);
    EXPECT_EQ(truth.emulated, truth.unquantized);
    if (f.layer.router_weight_on_input) {
      EXPECT_EQ(truth.emulated,
                compute_truth(f.layer, *f.scheme, on_x, *f.experts, f.inputs.view(), 1).emulated);
    }
    EXPECT_EQ(f.kernel(numerics, order), truth.emulated);
    order = {.backward = !order.backward, .lanes = order.lanes * 4};
  }
}

TEST_P(ExactInputs, QuantisationLosesNothing) {
  const Case c = cases().at(GetParam());
  SCOPED_TRACE(describe(c));
  const Fixture f(c);
  for (const auto role : {Role::w13, Role::w2}) {
    const MatrixShape shape = weight_shape(f.layer, role);
    const MatrixBytes bytes = f.scheme->weight_bytes(shape);
    std::vector<std::byte> values(bytes.values), scales(bytes.scales), zeros(bytes.zero_points),
        index(bytes.group_index);
    const auto& original = role == Role::w13 ? f.w13[0] : f.w2[0];
    f.experts->quantized(0, {shape, values, scales, zeros, index});
    std::vector<double> back(original.size());
    f.scheme->dequantize_weight({shape, values, scales, zeros, index}, 0, shape.rows, back);
    EXPECT_TRUE(std::equal(original.begin(), original.end(), back.begin()));
  }
  const auto survives = [&](Role role, std::span<const float> v, std::int64_t cols) {
    const ActivationShape shape = {.rows = static_cast<std::int64_t>(v.size()) / cols,
                                   .cols = cols,
                                   .dtype = f.layer.dtype,
                                   .static_scale = f.experts->activation_scale(role)};
    std::vector<double> seen(v.size());
    f.scheme->emulate_activation(v, shape, seen);
    return std::equal(v.begin(), v.end(), seen.begin());
  };
  EXPECT_TRUE(survives(Role::w13, f.x, f.layer.hidden_size));
  if (f.layer.router_weight_on_input) return;
  EXPECT_TRUE(survives(Role::w2, f.hidden(f.x.data(), 0, 1, {}, {}), f.layer.intermediate_size));
}

// What makes the test above worth having: outputs are not all alike, and a kernel that loses one
// column or takes a neighbour's gate is seen.
TEST(ExactInputsContent, OutputsAreVariedAndGatesOpenAndShut) {
  const Fixture f(Case{
      "fp8_block", {.experts = 5, .top_k = 2, .hidden_size = 384, .intermediate_size = 256}, 2});
  const auto y = f.kernel({}, {});
  std::vector<double> distinct = y;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_GT(distinct.size(), 40u);
  EXPECT_LT(static_cast<double>(std::ranges::count(y, 0.0)), 0.5 * static_cast<double>(y.size()));
  const auto h = f.hidden(f.x.data(), 0, 1, {}, {});
  const auto shut = std::ranges::count(h, 0.0f);
  EXPECT_GT(shut, 30);
  EXPECT_LT(shut, 226);
}

// Columns that are zero for all these tokens (and experts) have nothing to lose and are skipped.
TEST(ExactInputsContent, EveryLostColumnShows) {
  constexpr std::size_t k = 136, n = 72;
  Fixture f(
      Case{"fp8_block", {.experts = 2, .top_k = 2, .hidden_size = k, .intermediate_size = n}, 0});
  const auto y = f.kernel({}, {});
  std::size_t shown = 0;
  for (std::size_t column = 0; column < k; ++column) {
    const auto x = f.x;
    for (std::size_t m = 0; m < kTokens; ++m) f.x[m * k + column] = 0;
    if (f.x == x) continue;
    EXPECT_NE(f.kernel({}, {}), y) << column;
    f.x = x;
    ++shown;
  }
  EXPECT_GT(shown, k * 9 / 10);

  std::vector<bool> used(n, false);
  for (std::size_t m = 0; m < kTokens; ++m) {
    for (std::size_t e = 0; e < 2; ++e) {
      const auto h = f.hidden(&f.x[m * k], e, 1, {}, {});
      for (std::size_t column = 0; column < n; ++column) {
        if (h[column] != 0) used[column] = true;
      }
    }
  }
  EXPECT_GT(std::ranges::count(used, true), n * 9 / 10);
  for (std::size_t column = 0; column < n; ++column) {
    if (!used[column]) continue;
    const auto w2 = f.w2;
    for (auto& w : f.w2) {
      for (std::size_t r = 0; r < k; ++r) w[r * n + column] = 0;
    }
    EXPECT_NE(f.kernel({}, {}), y) << column;
    f.w2 = w2;
  }
}

TEST(ExactInputsContent, SpreadGivesNeighbouringBlocksDifferentScales) {
  const Layer layer = {.experts = 1, .top_k = 1, .hidden_size = 1024, .intermediate_size = 512};
  const std::shared_ptr<const Scheme> scheme = make_scheme("fp8_block");
  const auto experts = generated_experts(layer, scheme, Distribution::exact, kSeed, 2);
  const MatrixShape shape = weight_shape(layer, Role::w13);
  const MatrixBytes bytes = scheme->weight_bytes(shape);
  std::vector<std::byte> values(bytes.values), scales(bytes.scales);
  experts->quantized(0, {shape, values, scales, {}, {}});
  std::vector<float> s(scales.size() / sizeof(float));
  std::memcpy(s.data(), scales.data(), scales.size());
  const float smallest = *std::ranges::min_element(s);
  for (const float scale : s)
    EXPECT_EQ(std::log2(scale / smallest), std::floor(std::log2(scale / smallest)));
  EXPECT_EQ(*std::ranges::max_element(s), 16 * smallest);  // 2^v, v in 0 .. 4
  int differ = 0;
  for (std::size_t i = 1; i < s.size(); ++i) differ += s[i] != s[i - 1];
  EXPECT_GT(differ, static_cast<int>(s.size()) / 2);
}

std::string refusal(const Layer& layer, const char* scheme = "fp8_block") {
  try {
    generated_experts(layer, make_scheme(scheme), Distribution::exact, kSeed);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(ExactInputsRefusals, SayWhatWouldDo) {
  using testing::HasSubstr;
  const Layer good = {.experts = 4, .top_k = 2, .hidden_size = 128, .intermediate_size = 128};
  EXPECT_EQ(refusal(good), "");
  Layer layer = good;
  layer.activation.kind = ActivationKind::swiglu_clamped;
  EXPECT_THAT(refusal(layer), HasSubstr("silu_and_mul or gelu_and_mul"));
  layer = good;
  layer.activation.kind = ActivationKind::gelu_tanh_and_mul;
  EXPECT_THAT(refusal(layer), HasSubstr("silu_and_mul or gelu_and_mul"));
  layer = good;
  layer.intermediate_size = 6;
  EXPECT_THAT(refusal(layer), HasSubstr("at least 8"));
  layer = good;
  layer.top_k = 65, layer.experts = 80;
  EXPECT_THAT(refusal(layer), HasSubstr("at most 64"));
  EXPECT_THROW(generate_inputs(good, Distribution::exact, {}, 1, kSeed, 0), InputError);
}

TEST(ExactInputsRefusals, CanBeAskedForBeforeAnythingIsMade) {
  const Layer layer = {.experts = 4, .top_k = 2, .hidden_size = 128, .intermediate_size = 128};
  EXPECT_EQ(no_exact_inputs(layer, make_scheme("w4a16_g64_zp")->traits()), std::nullopt);
  EXPECT_EQ(no_exact_inputs(layer, make_scheme("w4a16_g64_zp_actorder")->traits()),
            refusal(layer, "w4a16_g64_zp_actorder"));
}

}  // namespace
}  // namespace moegauge
