#include <gtest/gtest.h>

#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Bits = std::vector<std::uint16_t>;

Layer layer(const Activation& activation, GateUpOrder order) {
  return {.experts = 1,
          .top_k = 1,
          .hidden_size = 2,
          .intermediate_size = 2,
          .activation = activation,
          .gate_up_order = order};
}

// The output is compared with values worked out by other means, within bf16's rounding.
OpErrors judged(const Layer& of, const Bits& gate_up, const Bits& output) {
  const OpProblem p = op_problem("activation", of, "bf16", 1);
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "gate_up", gate_up)};
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "output", output)};
  return op_named("activation").truth(p, {}, inputs, nullptr, 1)->judge(outputs);
}

// bf16: 1 = 3F80, 2 = 4000, 3 = 4040, -1 = BF80, 8 = 4100, -8 = C100.
// silu(1) = 0.7310586 -> times 3 = 2.193176 -> 400C (2.1875); silu(-1) = -0.2689414 -> times 2 =
// -0.5378828 -> BF0A (-0.5390625).
TEST(ActivationOp, ReadsGatesThenUps) {
  const OpErrors errors = judged(layer({}, GateUpOrder::concatenated),
                                 {0x3F80, 0xBF80, 0x4040, 0x4000}, {0x400C, 0xBF0A});
  EXPECT_FALSE(errors.wrong) << *errors.wrong;
  EXPECT_EQ(errors.implementation.relative_l2, 0);
}

TEST(ActivationOp, OrOneOfEachInTurn) {
  EXPECT_EQ(judged(layer({}, GateUpOrder::interleaved), {0x3F80, 0x4040, 0xBF80, 0x4000},
                   {0x400C, 0xBF0A})
                .implementation.relative_l2,
            0);
  EXPECT_TRUE(judged(layer({}, GateUpOrder::interleaved), {0x3F80, 0xBF80, 0x4040, 0x4000},
                     {0x400C, 0xBF0A})
                  .wrong);
}

// Phi(1) = 0.8413447, times 1 * 2 = 1.682689 -> 3FD7 (1.6796875); gelu(-1) * 2 = -0.3173105 ->
// BEA2 (-0.31640625). tanh form: 0.8411920 * 2 = 1.682384 -> 3FD7.
TEST(ActivationOp, KnowsGelu) {
  EXPECT_EQ(judged(layer({.kind = ActivationKind::gelu_and_mul}, GateUpOrder::concatenated),
                   {0x3F80, 0xBF80, 0x4000, 0x4000}, {0x3FD7, 0xBEA2})
                .implementation.relative_l2,
            0);
}

// g = 8 is held at the limit 7, u = -8 at -7: (-7 + 1) * 7 * sigmoid(1.702 * 7) = -41.99972 ->
// C228 (-42). g = 1, u = 2: 3 * sigmoid(1.702) = 3 * 0.8457958 = 2.537387 -> 4022 (2.53125).
TEST(ActivationOp, ClampsAsTheModelSays) {
  EXPECT_EQ(judged(layer({.kind = ActivationKind::swiglu_clamped}, GateUpOrder::concatenated),
                   {0x4100, 0x3F80, 0xC100, 0x4000}, {0xC228, 0x4022})
                .implementation.relative_l2,
            0);
}

}  // namespace
}  // namespace moegauge
