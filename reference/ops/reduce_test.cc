#include <gtest/gtest.h>

#include <cstring>

#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Bits = std::vector<std::uint16_t>;

// bf16: 1 = 3F80, 2 = 4000, 3 = 4040, 4 = 4080, 0.5 = 3F00, 1.25 = 3FA0, 2.5 = 4020.
const Bits kPairs = {0x3F80, 0x4000, 0x4040,   // token 0, slot 0: 1 2 3
                     0x4080, 0x3F00, 0x3F80};  // token 0, slot 1: 4 0.5 1

Layer layer() { return {.experts = 4, .top_k = 2, .hidden_size = 3, .intermediate_size = 2}; }

OpErrors judged(const OpProblem& p, const std::vector<float>& weights, const Bits& output) {
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "pairs", kPairs),
                                      tensor_of(p.inputs, "topk_weights", weights)};
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "output", output)};
  return op_named("reduce").truth(p, {}, inputs, nullptr, 1)->judge(outputs);
}

TEST(Reduce, SumsPairsByTheirWeights) {
  // 0.5 * (1 2 3) + 0.25 * (4 0.5 1) = 1.5, 1.125, 1.75.
  const OpProblem p = op_problem("reduce", layer(), "bf16", 1);
  const OpErrors errors = judged(p, {0.5f, 0.25f}, {0x3FC0, 0x3F90, 0x3FE0});
  EXPECT_FALSE(errors.wrong) << *errors.wrong;
  EXPECT_EQ(errors.total.relative_l2, 0);
}

TEST(Reduce, LeavesWeightsOutThatTheInputAlreadyCarries) {
  Layer on_input = layer();
  on_input.top_k = 1;
  on_input.hidden_size = 6;
  on_input.router_weight_on_input = true;
  const OpProblem p = op_problem("reduce", on_input, "bf16", 1);
  EXPECT_FALSE(judged(p, {0.5f}, kPairs).wrong);
}

TEST(Reduce, RoundsOnceToTheNearestEvenValue) {
  // 1 + 2^-8 lies between the bf16 neighbours 1 and 1 + 2^-7, nearer to neither; 1 is even.
  Layer one = layer();
  one.hidden_size = 1;
  const OpProblem p = op_problem("reduce", one, "bf16", 1);
  const std::vector<Tensor> inputs = {
      tensor_of(p.inputs, "pairs", Bits{0x3F80, 0x3F80}),
      tensor_of(p.inputs, "topk_weights", std::vector<float>{1.0f, 0x1p-8f})};
  const auto truth = op_named("reduce").truth(p, {}, inputs, nullptr, 1);
  const auto error = [&](std::uint16_t bits) {
    const std::vector<Tensor> outputs = {tensor_of(p.outputs, "output", Bits{bits})};
    return truth->judge(outputs).implementation.relative_l2;
  };
  EXPECT_EQ(error(0x3F80), 0);
  EXPECT_NEAR(error(0x3F81), 0x1p-7, 1e-9);
}

TEST(Reduce, FindsASlotThatWasLeftOut) {
  const OpProblem p = op_problem("reduce", layer(), "bf16", 1);
  EXPECT_TRUE(judged(p, {0.5f, 0.25f}, {0x3F00, 0x3F80, 0x3FC0}).wrong);
}

TEST(Reduce, DrawsPairsInFp32ThatNo16BitFormatHolds) {
  const OpProblem p = op_problem("reduce", layer(), "bf16", 5, {{"pair_out", "fp32"}});
  const auto inputs = op_named("reduce").draw_inputs(p, {.seed = 3});
  int wide = 0;
  for (const float v : inputs[0].as<float>()) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    wide += (bits & 0xFFFFu) != 0;
  }
  EXPECT_GT(wide, 25);  // of 30
}

}  // namespace
}  // namespace moegauge
