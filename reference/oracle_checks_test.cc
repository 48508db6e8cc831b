#include "reference/oracle_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/base/input_error.h"
#include "reference/oracle.h"
#include "reference/oracle_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using testing::HasSubstr;

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

}  // namespace
}  // namespace moegauge
