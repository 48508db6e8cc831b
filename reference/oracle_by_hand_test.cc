#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/oracle.h"
#include "reference/oracle_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Doubles = std::vector<double>;

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

// K = N = 1: gate = 40 x, up = x, x = 1 + 2^-7.
struct OneByOne {
  Layer layer = {.experts = 1, .top_k = 1, .hidden_size = 1, .intermediate_size = 1};
  HeldInputs in = {
      .tokens = 1, .x = {to_bits(Dtype::bf16, 1.0078125f)}, .ids = {0}, .weights = {1}};
  float w2 = 1;
  double y(const char* scheme_name, const Numerics& numerics) const {
    const auto scheme = make_scheme(scheme_name);
    const HeldExperts experts(layer, *scheme, {{40, 1}}, {{w2}});
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

// 40.75 * 1.0078125 = 41.068, times 6.1 = 250.52, in bf16 (steps of 1) 251. Rounded before the
// weight, 41.0 (steps of 1/4), it is 250.1 and 250.
TEST(OracleByHand, RoundsTheSecondGemmsOutputBeforeTheWeightIfDeclared) {
  OneByOne one;
  one.w2 = 1.0078125f;
  one.in.weights = {6.1f};
  EXPECT_EQ(one.y("bf16", {}), 251);
  EXPECT_EQ(one.y("bf16", {.gemm2_out = Precision::activation_dtype}), 250);
}

// Int8: up is 127 * bf16(1 / 127) = 0.99994, gate 127 * bf16(40 / 127) = 39.9355, so h = 40.25
// * 1.0078, as bf16 (steps of 1/4) 40.5. Rounded to bf16 the weights are 1 and 40 again:
// RoundsTheFirst... above.
TEST(OracleByHand, RoundsTheDequantisedWeightsIfDeclared) {
  EXPECT_EQ(OneByOne().y("w8a16_channel", {}), 40.5);
  EXPECT_EQ(OneByOne().y("w8a16_channel", {.weights = Precision::activation_dtype}), 40.75);
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

}  // namespace
}  // namespace moegauge
