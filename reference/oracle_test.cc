#include "reference/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/oracle_checks.h"
#include "reference/oracle_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using testing::ElementsAre;
using Doubles = std::vector<double>;

struct AgainstNaive {
  const char* what;
  const char* scheme;
  Layer layer;
  Numerics numerics = {};
  std::int64_t tokens = 5;
};

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

}  // namespace
}  // namespace moegauge
