#include "reference/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "reference/base/input_error.h"
#include "reference/error.h"
#include "reference/gemm/gemm.h"
#include "reference/oracle_checks.h"
#include "reference/oracle_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using testing::HasSubstr;
using Doubles = std::vector<double>;

Truth truth_of(const Layer& layer, const Scheme& scheme, const HeldExperts& experts,
               const HeldInputs& in, const Numerics& numerics = {}, int threads = 2) {
  return compute_truth(layer, scheme, numerics, experts, in.view(), threads);
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

TEST(OracleByHand, SumsTheWeightedExpertsOfAToken) {
  ByHand by_hand;
  const Truth truth = by_hand.truth();
  EXPECT_EQ(truth.tokens, 1);
  EXPECT_EQ(truth.hidden_size, 2);
  EXPECT_EQ(truth.emulated, (Doubles{0.5 * 80 + 0.25 * 80, 0.5 * 80 + 0.25 * 40}));
  EXPECT_EQ(truth.unquantized, truth.emulated);
  EXPECT_EQ(truth.magnitude, truth.emulated);  // nothing cancels
}

TEST(OracleByHand, CountsAnExpertTwiceThatIsNamedTwice) {
  ByHand by_hand;
  by_hand.in.ids = {1, 1};
  EXPECT_EQ(by_hand.truth().emulated, (Doubles{0.75 * 80, 0.75 * 40}));
}

TEST(OracleByHand, LeavesDroppedPairsOut) {
  ByHand by_hand;
  by_hand.in.ids = {-1, 1};
  EXPECT_EQ(by_hand.truth().emulated, (Doubles{20, 10}));
  by_hand.in.ids = {-1, -1};
  EXPECT_EQ(by_hand.truth().emulated, (Doubles{0, 0}));
  EXPECT_EQ(by_hand.truth().magnitude, (Doubles{0, 0}));
}

TEST(OracleByHand, LeavesPairsOfOtherRanksOutAndUsesLocalIds) {
  ByHand by_hand;
  by_hand.layer.expert_map = {-1, 0};  // global expert 1 is this rank's expert 0
  HeldExperts rank = {by_hand.layer,
                      *by_hand.scheme,
                      {by_hand.experts.weights(1, Role::w13)},
                      {by_hand.experts.weights(1, Role::w2)}};
  EXPECT_EQ(truth_of(by_hand.layer, *by_hand.scheme, rank, by_hand.in).emulated, (Doubles{20, 10}));
}

TEST(OracleByHand, ReadsInterleavedGateAndUp) {
  ByHand by_hand;
  by_hand.layer.gate_up_order = GateUpOrder::interleaved;
  HeldExperts interleaved = {by_hand.layer,
                             *by_hand.scheme,
                             {{40, 0, 1, 0, 0, 20, 0, 1}, {40, 0, 0, 1, 0, 20, 1, 0}},
                             {{1, 0.5f, 0, 1}, {1, 0, 0, 1}}};
  EXPECT_EQ(truth_of(by_hand.layer, *by_hand.scheme, interleaved, by_hand.in).emulated,
            (Doubles{60, 50}));
}

TEST(OracleByHand, MagnitudeSumsWhatCancels) {
  ByHand by_hand;
  by_hand.in.weights = {0.5f, -0.25f};
  const Truth truth = by_hand.truth();
  EXPECT_EQ(truth.emulated, (Doubles{20, 30}));
  EXPECT_EQ(truth.magnitude, (Doubles{60, 50}));
}

TEST(OracleByHand, RoundsTheOutputOnceToTheDtype) {
  ByHand by_hand;
  by_hand.in.weights = {0.5f, 1.0f / 1024};  // 40 + 80/1024 = 40.078: bf16 has steps of 1/4
  const Truth truth = by_hand.truth();
  EXPECT_EQ(truth.emulated, (Doubles{40, 40}));
  EXPECT_EQ(truth.unquantized, (Doubles{40 + 80.0 / 1024, 40 + 40.0 / 1024}));
}

// K = N = 1: gate = 40 x, up = x, w2 = 1, x = 1 + 2^-7.
struct OneByOne {
  Layer layer = {.experts = 1, .top_k = 1, .hidden_size = 1, .intermediate_size = 1};
  HeldInputs in = {
      .tokens = 1, .x = {to_bits(Dtype::bf16, 1.0078125f)}, .ids = {0}, .weights = {1}};
  double y(const char* scheme_name, const Numerics& numerics) const {
    const auto scheme = make_scheme(scheme_name);
    const HeldExperts experts(layer, *scheme, {{40, 1}}, {{1}});
    return truth_of(layer, *scheme, experts, in, numerics).emulated[0];
  }
};

// gate = 40.3125, h = 40.3125 * 1.0078125 = 40.6274, as the second GEMM's bf16 operand (steps of
// 1/4) 40.75. With gate rounded to bf16, 40.25, h = 40.5645 and 40.5.
TEST(OracleByHand, RoundsTheFirstGemmsOutputIfDeclared) {
  EXPECT_EQ(OneByOne().y("bf16", {}), 40.75);
  EXPECT_EQ(OneByOne().y("bf16", {.gemm1_out = Precision::activation_dtype}), 40.5);
}

// With one element per scale FP8 keeps its operand to fp32: y = bf16(0.3 * h), steps of 1/16. Of
// h = 40.6274 that is 12.1875, of h rounded to bf16, 40.75, it is 12.25.
TEST(OracleByHand, RoundsTheActivationsOutputIfDeclared) {
  OneByOne one;
  one.in.weights = {0.3f};
  EXPECT_EQ(one.y("fp8_ptpc", {}), 12.1875);
  EXPECT_EQ(one.y("fp8_ptpc", {.act_out = Precision::activation_dtype}), 12.25);
}

// Pairs 40.25 and 20.07 sum to 60.32, in bf16 (steps of 1/4) 60.25. Rounded by themselves, 20.07 is
// 20.125 (steps of 1/8), and 60.375 ties to the even 60.5.
TEST(OracleByHand, RoundsEachPairIfDeclared) {
  ByHand by_hand;
  by_hand.in.weights = {40.25f / 80, 20.07f / 80};
  const auto y = [&](const Numerics& numerics) {
    return truth_of(by_hand.layer, *by_hand.scheme, by_hand.experts, by_hand.in, numerics)
        .emulated[0];
  };
  EXPECT_EQ(y({}), 60.25);
  EXPECT_EQ(y({.pair_out = Precision::activation_dtype}), 60.5);
}

// Weight 0.3 on gate and up, weight 0.3 on x rounded to bf16 (0.3023 -> 0.302734375): the products
// differ, and neither is weighed again at the end. gate and up: h = silu(12.09375) * 0.30234375,
// 3.6564; by x: gate 12.109375, h = 3.6659; as bf16 operands (steps of 1/64) 3.65625 and 3.671875.
TEST(OracleByHand, PutsTheRouterWeightWhereTheKernelDeclaresIt) {
  OneByOne one;
  one.layer.router_weight_on_input = true;
  one.in.weights = {0.3f};
  EXPECT_EQ(one.y("bf16", {}), 3.65625);
  EXPECT_EQ(one.y("bf16", {.weight_on_input = WeightOnInput::x}), 3.671875);
}

TEST(Oracle, GivesNothingForNoTokens) {
  ByHand by_hand;
  by_hand.in = {};
  const Truth truth = by_hand.truth();
  EXPECT_EQ(truth.tokens, 0);
  EXPECT_TRUE(truth.emulated.empty());
  EXPECT_TRUE(by_hand.experts.asked().empty());
}

struct AgainstNaive {
  const char* what;
  const char* scheme;
  Layer layer;
  Numerics numerics = {};
  std::int64_t tokens = 5;
};

Layer layer_of(std::int64_t experts, std::int64_t top_k, std::int64_t k, std::int64_t n) {
  return {.experts = experts, .top_k = top_k, .hidden_size = k, .intermediate_size = n};
}
Layer with(Layer layer, auto change) {
  change(layer);
  return layer;
}

std::vector<AgainstNaive> naive_cases() {
  constexpr auto half = Precision::activation_dtype;
  const auto swiglu = [](Layer& l) {
    l.activation = {.kind = ActivationKind::swiglu_clamped, .limit = 1.0};
    l.gate_up_order = GateUpOrder::interleaved;
    l.expert_bias = true;
  };
  const auto on_input = [](Layer& l) { l.router_weight_on_input = true; };
  const auto fp16 = [](Layer& l) { l.dtype = Dtype::fp16; };
  return {
      {"bf16", "bf16", layer_of(3, 2, 40, 24)},
      {"fp16_all_rounded", "fp16", with(layer_of(3, 2, 40, 24), fp16), {half, half, half}},
      {"block_n192", "fp8_block", layer_of(3, 2, 200, 192)},
      {"block_n64", "fp8_block", layer_of(3, 2, 136, 64)},
      {"block_n80", "fp8_block", layer_of(2, 2, 130, 80), {half, half, half}},
      {"block_n1344", "fp8_block", layer_of(2, 1, 140, 1344), {}, 3},
      {"block_fnuz", "fp8_block_fnuz224", layer_of(2, 2, 150, 100)},
      {"tensor", "fp8_tensor", layer_of(3, 2, 70, 50)},
      {"tensor_static", "fp8_tensor_static", layer_of(3, 2, 70, 50)},
      {"ptpc", "fp8_ptpc", layer_of(3, 2, 70, 50), {half, half, half}},
      {"mxfp8", "mxfp8", layer_of(3, 2, 70, 50)},
      {"w4a16_actorder", "w4a16_g32_zp_actorder", layer_of(3, 2, 70, 50)},
      {"w8a16_fp16", "w8a16_g64", with(layer_of(3, 2, 70, 50), fp16), {half, half, half}},
      {"w8a8", "w8a8_int8", layer_of(3, 2, 70, 50)},
      {"mxfp4_gpt_oss", "mxfp4", with(layer_of(4, 2, 90, 90), swiglu), {half, half, half}},
      {"tp_rank_1", "bf16",
       with(with(layer_of(4, 2, 30, 30), swiglu), [](Layer& l) { l.adds_w2_bias = false; })},
      {"gelu", "bf16",
       with(layer_of(2, 2, 30, 30),
            [](Layer& l) { l.activation.kind = ActivationKind::gelu_and_mul; })},
      {"gelu_tanh", "bf16",
       with(layer_of(2, 2, 30, 30),
            [](Layer& l) { l.activation.kind = ActivationKind::gelu_tanh_and_mul; })},
      {"weight_on_gemm1", "fp8_ptpc", with(layer_of(3, 1, 70, 50), on_input), {half, half, half}},
      {"weight_on_x",
       "fp8_ptpc",
       with(layer_of(3, 1, 70, 50), on_input),
       {.weight_on_input = WeightOnInput::x}},
      {"expert_parallel", "fp8_block",
       with(layer_of(6, 3, 70, 50), [](Layer& l) { l.expert_map = {-1, 2, -1, 0, 1, -1}; })},
      {"one_by_one", "bf16", layer_of(1, 1, 1, 1)},
  };
}

class OracleAgainstNaive : public testing::TestWithParam<AgainstNaive> {};

// The operands agree exactly and the sums to fp64; a sum that falls on the other side of a rounding
// point would show as a whole step, and none does for these seeds.
TEST_P(OracleAgainstNaive, AgreesWithLongDoubleLoops) {
  const auto& [what, name, layer, numerics, tokens] = GetParam();
  const auto scheme = make_scheme(name);
  const auto experts = HeldExperts::random(layer, *scheme, 100);
  const auto in = HeldInputs::random(layer, tokens, 200);
  const Truth truth = truth_of(layer, *scheme, experts, in, numerics);
  const Truth naive = NaiveLayer({layer, *scheme, numerics, experts, in}).compute();
  ASSERT_EQ(truth.emulated.size(), naive.emulated.size());
  for (std::size_t i = 0; i < naive.emulated.size(); ++i) {
    EXPECT_EQ(truth.emulated[i], naive.emulated[i]) << i;
    EXPECT_NEAR(truth.unquantized[i], naive.unquantized[i], 1e-13 * (1 + naive.magnitude[i])) << i;
    EXPECT_NEAR(truth.magnitude[i], naive.magnitude[i], 1e-13 * naive.magnitude[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, OracleAgainstNaive, testing::ValuesIn(naive_cases()),
                         [](const auto& param) { return std::string(param.param.what); });

struct Random {
  Layer layer = layer_of(8, 3, 150, 200);
  std::unique_ptr<const Scheme> scheme = make_scheme("fp8_block");
  HeldExperts experts = HeldExperts::random(layer, *scheme, 1);
  HeldInputs in = HeldInputs::random(layer, 40, 2);
};

TEST(Oracle, GivesTheSameBitsForAnyNumberOfThreads) {
  Random random;
  const Truth one = truth_of(random.layer, *random.scheme, random.experts, random.in, {}, 1);
  for (const int threads : {2, 3, 8}) {
    const Truth more =
        truth_of(random.layer, *random.scheme, random.experts, random.in, {}, threads);
    EXPECT_EQ(more.emulated, one.emulated);
    EXPECT_EQ(more.unquantized, one.unquantized);
    EXPECT_EQ(more.magnitude, one.magnitude);
  }
}

TEST(Oracle, GivesTheSameBitsHoweverFewExpertsFitAtATime) {
  Random random;
  const Truth all = truth_of(random.layer, *random.scheme, random.experts, random.in);
  // One expert; two or three of 60 kB and some rows each.
  for (const std::int64_t bytes : {1, 200'000}) {
    const Truth few = compute_truth_within(bytes, random.layer, *random.scheme, {}, random.experts,
                                           random.in.view(), 2);
    EXPECT_EQ(few.emulated, all.emulated);
    EXPECT_EQ(few.unquantized, all.unquantized);
    EXPECT_EQ(few.magnitude, all.magnitude);
  }
}

TEST(Oracle, HoldsBlocksOfRowsAndNoExpertInFullPrecision) {
  const Layer layer = layer_of(1, 1, 600, 700);
  const auto scheme = make_scheme("bf16");
  const auto experts = HeldExperts::random(layer, *scheme, 1);
  truth_of(layer, *scheme, experts, HeldInputs::random(layer, 3, 2));
  EXPECT_GT(experts.most_rows(), 0);
  EXPECT_LE(experts.most_rows(), 128);
}

TEST(Oracle, AsksForTheExpertsThatTokensAreRoutedToAndNoOthers) {
  Random random;
  std::ranges::fill(random.in.ids, 5);
  random.in.ids[7] = 2;
  truth_of(random.layer, *random.scheme, random.experts, random.in);
  EXPECT_THAT(random.experts.asked(), ElementsAre(2, 5));
}

TEST(Oracle, DoesNotCareInWhichOrderATokenNamesItsExperts) {
  Random random;
  HeldInputs reversed = random.in;
  for (std::size_t t = 0; t < 40; ++t) {
    std::swap(reversed.ids[3 * t], reversed.ids[3 * t + 2]);
    std::swap(reversed.weights[3 * t], reversed.weights[3 * t + 2]);
  }
  const Truth a = truth_of(random.layer, *random.scheme, random.experts, random.in);
  const Truth b = truth_of(random.layer, *random.scheme, random.experts, reversed);
  for (std::size_t i = 0; i < a.unquantized.size(); ++i) {
    EXPECT_NEAR(a.unquantized[i], b.unquantized[i], 1e-14 * a.magnitude[i]);
  }
}

// Expert-parallel ranks hold 0, 1, 2, ... round robin; their outputs add up to the whole layer's.
TEST(Oracle, SplitsIntoExpertParallelRanks) {
  Random random;
  const Truth whole = truth_of(random.layer, *random.scheme, random.experts, random.in);
  Doubles sum(whole.unquantized.size());
  for (int rank = 0; rank < 2; ++rank) {
    Layer layer = random.layer;
    std::vector<std::vector<float>> w13, w2;
    for (std::int32_t e = 0; e < 8; ++e) {
      layer.expert_map.push_back(e % 2 == rank ? e / 2 : -1);
      if (e % 2 != rank) continue;
      w13.push_back(random.experts.weights(e, Role::w13));
      w2.push_back(random.experts.weights(e, Role::w2));
    }
    const HeldExperts experts(layer, *random.scheme, w13, w2);
    const Truth part = truth_of(layer, *random.scheme, experts, random.in);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part.unquantized[i];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_NEAR(sum[i], whole.unquantized[i], 1e-14 * whole.magnitude[i]);
  }
}

class OracleWithStrangeTokens : public testing::TestWithParam<const char*> {};

TEST_P(OracleWithStrangeTokens, KeepsANanOrInfinityToItsToken) {
  const Layer layer = layer_of(4, 2, 70, 50);
  const auto scheme = make_scheme(GetParam());
  const auto experts = HeldExperts::random(layer, *scheme, 1);
  HeldInputs in = HeldInputs::random(layer, 6, 2);
  for (std::size_t i = 0; i < in.ids.size(); ++i) in.ids[i] = static_cast<std::int32_t>(i % 4);
  in.ids[8] = in.ids[9] = -1;  // token 4 has no expert
  // Not the largest of their tokens, so that a scale per tensor is the same without them.
  for (const std::size_t token : {1, 2, 3, 4}) in.x[token * 70 + 9] = to_bits(Dtype::bf16, 0.01f);
  const Truth clean = truth_of(layer, *scheme, experts, in);
  const std::uint16_t nan = 0x7FC0, infinity = 0x7F80;
  in.x[1 * 70 + 9] = nan;
  in.x[2 * 70 + 9] = infinity;
  in.x[3 * 70 + 9] = nan;
  in.x[3 * 70 + 10] = infinity;
  in.x[4 * 70 + 9] = nan;
  const Truth truth = truth_of(layer, *scheme, experts, in);
  for (std::size_t i = 0; i < truth.emulated.size(); ++i) {
    const std::size_t token = i / 70;
    if (token == 1 || token == 3) {
      EXPECT_TRUE(std::isnan(truth.emulated[i]) && std::isnan(truth.unquantized[i])) << i;
    } else if (token == 2) {
      EXPECT_TRUE(std::isinf(truth.emulated[i]) && std::isinf(truth.unquantized[i])) << i;
    } else {
      EXPECT_EQ(truth.emulated[i], token == 4 ? 0 : clean.emulated[i]) << i;
      EXPECT_EQ(truth.unquantized[i], token == 4 ? 0 : clean.unquantized[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, OracleWithStrangeTokens,
                         testing::Values("bf16", "fp8_block", "fp8_ptpc", "mxfp8", "w8a8_int8",
                                         "w4a16"));

std::string refusal(const Layer& layer, const char* scheme_name) {
  return illegal(layer, *make_scheme(scheme_name)).value_or("");
}

TEST(IllegalLayers, AreRefusedWithTheReason) {
  const Layer legal = layer_of(4, 2, 8, 8);
  EXPECT_EQ(refusal(legal, "bf16"), "");
  EXPECT_THAT(refusal(with(legal, [](Layer& l) { l.router_weight_on_input = true; }), "bf16"),
              HasSubstr("top_k is 2"));
  EXPECT_THAT(refusal(with(layer_of(4, 1, 8, 8),
                           [](Layer& l) { l.router_weight_on_input = l.expert_bias = true; }),
                      "bf16"),
              HasSubstr("bias"));
  EXPECT_THAT(refusal(legal, "fp16"), HasSubstr("fp16"));
  EXPECT_THAT(refusal(with(legal,
                           [](Layer& l) {
                             l.expert_map = {0, 1};
                           }),
                      "bf16"),
              HasSubstr("2 entries for 4 experts"));
  EXPECT_THAT(refusal(with(legal,
                           [](Layer& l) {
                             l.expert_map = {0, 0, -1, -1};
                           }),
                      "bf16"),
              HasSubstr("twice"));
  EXPECT_THAT(refusal(with(legal,
                           [](Layer& l) {
                             l.expert_map = {3, -1, -1, -1};
                           }),
                      "bf16"),
              HasSubstr("names 3"));
  EXPECT_THAT(refusal(layer_of(4, 0, 8, 8), "bf16"), HasSubstr("top_k 0"));
  EXPECT_THAT(refusal(layer_of(4, 1, 0, 8), "bf16"), HasSubstr("hidden size 0"));
}

TEST(IllegalInputs, AreInputErrors) {
  ByHand by_hand;
  by_hand.in.ids = {0, 2};
  EXPECT_THROW(by_hand.truth(), InputError);
  by_hand.in.ids = {0, -2};
  EXPECT_THROW(by_hand.truth(), InputError);
  by_hand.in.ids = {0};
  EXPECT_THROW(by_hand.truth(), InputError);
}

TEST(IllegalInputs, IncludeAMissingStaticScale) {
  class Unscaled final : public HeldExperts {
   public:
    using HeldExperts::HeldExperts;
    float activation_scale(Role) const override { return 0; }
  };
  const Layer layer = layer_of(1, 1, 1, 1);
  const auto scheme = make_scheme("fp8_tensor_static");
  const Unscaled experts(layer, *scheme, {{1, 1}}, {{1}});
  const HeldInputs in = HeldInputs::random(layer, 1, 3);
  EXPECT_THROW(truth_of(layer, *scheme, experts, in), InputError);
}

TEST(IllegalInputs, IncludeABiasOfTheWrongLength) {
  class Short final : public HeldExperts {
   public:
    using HeldExperts::HeldExperts;
    std::vector<float> bias(std::int64_t, Role) const override { return {1}; }
  };
  Layer layer = layer_of(1, 1, 1, 1);
  layer.expert_bias = true;
  const auto scheme = make_scheme("bf16");
  const Short experts(layer, *scheme, {{1, 1}}, {{1}});
  HeldInputs in = HeldInputs::random(layer, 1, 3);
  in.ids = {0};
  EXPECT_THROW(truth_of(layer, *scheme, experts, in), InputError);
}

// E4M3 rounds a value to 4 significant bits: a relative error uniform within half a step of values
// spread over a binade, 0.026 rms. Products of two such operands, summed, keep sqrt(2) of it:
// 0.037.
TEST(QuantizationError, OfOneFp8GemmOfGaussianDataIs0037) {
  const auto scheme = make_scheme("fp8_block");
  const std::int64_t m = 64, n = 256, k = 1024;
  const auto x = random_values(m * k, 1), w = random_values(n * k, 2);
  const Doubles exact_x(x.begin(), x.end()), exact_w(w.begin(), w.end());
  const Doubles seen_x = emulate(*scheme, x, {.rows = m, .cols = k});
  const Doubles seen_w = dequantize(*scheme, quantize(*scheme, {Role::w2, n, k}, w));
  Doubles exact(static_cast<std::size_t>(m * n)), seen(exact.size());
  const Gemm& gemm = Gemm::best();
  gemm.multiply({exact_x.data(), m, k, k}, {exact_w.data(), n, k, k}, {exact.data(), m, n, n});
  gemm.multiply({seen_x.data(), m, k, k}, {seen_w.data(), n, k, k}, {seen.data(), m, n, n});
  const auto error = measure_error(seen, exact, Doubles(exact.size(), 1), m, n, {}, Dtype::bf16);
  EXPECT_NEAR(error.relative_l2, 0.037, 0.002);
}

TEST(QuantizationError, OfAWholeFp8LayerOfGaussianDataIs006) {
  const Layer layer = layer_of(4, 2, 512, 384);
  const auto scheme = make_scheme("fp8_block");
  const Truth truth = truth_of(layer, *scheme, HeldExperts::random(layer, *scheme, 5),
                               HeldInputs::random(layer, 64, 6));
  const auto error =
      measure_error(truth.emulated, truth.unquantized, truth.magnitude, 64, 512, {}, Dtype::bf16);
  EXPECT_NEAR(error.relative_l2, 0.06, 0.005);
  EXPECT_EQ(error.non_finite, 0);
}

// y is rounded to bf16 once: half a step of 2^-8 at most, about 2^-9 / sqrt(3) * 1.4 rms.
TEST(QuantizationError, OfBf16IsTheRoundingOfHAndY) {
  const Layer layer = layer_of(4, 2, 512, 384);
  const auto scheme = make_scheme("bf16");
  const Truth truth = truth_of(layer, *scheme, HeldExperts::random(layer, *scheme, 5),
                               HeldInputs::random(layer, 64, 6));
  const auto error =
      measure_error(truth.emulated, truth.unquantized, truth.magnitude, 64, 512, {}, Dtype::bf16);
  EXPECT_GT(error.relative_l2, 0.001);
  EXPECT_LT(error.relative_l2, 0.004);
  EXPECT_LE(error.max_scaled, 0x1p-7);
}

}  // namespace
}  // namespace moegauge
