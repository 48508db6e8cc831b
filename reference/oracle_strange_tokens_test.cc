#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reference/oracle.h"
#include "reference/oracle_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;

class OracleWithStrangeTokens : public testing::TestWithParam<const char*> {};

TEST_P(OracleWithStrangeTokens, KeepsANanOrInfinityToItsToken) {
  const Layer layer = layer_of(4, 2, 70, 50);
  const auto scheme = make_scheme(GetParam());
  const auto experts = HeldExperts::random(layer, *scheme, 1);
  HeldInputs in = HeldInputs::random(layer, 6, 2);
  for (std::size_t i = 0; i < in.ids.size(); ++i) in.ids[i] = static_cast<std::int32_t>(i % 4);
  in.ids[8] = in.ids[9] = -1;  // token 4 has no expert
  // Not the largest of their tokens, so that a scale per tensor is the same without them.
  for (const std::size_t token : {1u, 2u, 3u, 4u})
    in.x[token * 70 + 9] = to_bits(Dtype::bf16, 0.01f);
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
      EXPECT_EQ(truth.not_compared[token], 1);
      EXPECT_TRUE(std::isinf(truth.emulated[i]) && std::isinf(truth.unquantized[i])) << i;
    } else {
      EXPECT_EQ(truth.not_compared[token], 0) << i;
      EXPECT_EQ(truth.emulated[i], token == 4 ? 0 : clean.emulated[i]) << i;
      EXPECT_EQ(truth.unquantized[i], token == 4 ? 0 : clean.unquantized[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Schemes, OracleWithStrangeTokens,
                         testing::Values("bf16", "fp8_block", "fp8_ptpc", "mxfp8", "w8a8_int8",
                                         "w4a16"));

// fp16 ends at 65504: x = 60000 through gate 40 x is beyond it already in the first GEMM's output.
// Such a token is compared all the same, as the infinity that the kernel must have too.
TEST(OracleOverflow, OfADeclaredRoundingPointIsComparedUnlikeAnInfiniteToken) {
  Layer layer = layer_of(1, 1, 1, 1);
  layer.dtype = Dtype::fp16;
  const auto scheme = make_scheme("fp16");
  const HeldExperts experts(layer, *scheme, {{40, 1}}, {{1}});
  const HeldInputs in = {
      .tokens = 1, .x = {to_bits(Dtype::fp16, 60000.0f)}, .ids = {0}, .weights = {1.0f}};
  const Truth truth = truth_of(layer, *scheme, experts, in);
  EXPECT_TRUE(std::isinf(truth.emulated[0]));
  EXPECT_TRUE(std::isfinite(truth.unquantized[0]));
  EXPECT_EQ(truth.not_compared, std::vector<std::uint8_t>{0});
}

}  // namespace
}  // namespace moegauge
