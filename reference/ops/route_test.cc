#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

struct Asked {
  Router router;
  Floats logits, bias = {};
  std::string shared = "separate";
};

// One token.
OpErrors judged(const Asked& asked, const Ids& ids, const Floats& weights) {
  OpProblem p;
  p.op = "route";
  p.layer = {.experts = asked.router.experts,
             .top_k = asked.router.top_k,
             .hidden_size = 1,
             .intermediate_size = 1};
  p.scheme = make_scheme("bf16");
  p.router = asked.router;
  p.correction_bias = !asked.bias.empty();
  p.tokens = 1;
  p.fields = {{"shared_experts", asked.shared}};
  EXPECT_FALSE(op_named("route").describe(p));
  std::vector<Tensor> inputs = {tensor_of(p.inputs, "router_logits", asked.logits)};
  if (p.correction_bias) inputs.push_back(tensor_of(p.inputs, "correction_bias", asked.bias));
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "topk_ids", ids),
                                       tensor_of(p.outputs, "topk_weights", weights)};
  return op_named("route").truth(p, {}, inputs, nullptr, 1)->judge(outputs);
}

std::string wrong(const Asked& asked, const Ids& ids, const Floats& weights) {
  return judged(asked, ids, weights).wrong.value_or("");
}

// Logits ln 1, ln 4, ln 2, ln 1: probabilities 1/8, 1/2, 1/4, 1/8.
const Floats kLogits = {0.0f, 1.3862944f, 0.6931472f, 0.0f};

TEST(Route, TakesTheLargestProbabilities) {
  const Router router = {.rule = RoutingRule::softmax, .experts = 4, .top_k = 2};
  EXPECT_EQ(wrong({router, kLogits}, {1, 2}, {0.5f, 0.25f}), "");
  Router renormalised = router;
  renormalised.renormalize = true;
  EXPECT_EQ(wrong({renormalised, kLogits}, {1, 2}, {2.0f / 3, 1.0f / 3}), "");
  EXPECT_THAT(wrong({renormalised, kLogits}, {1, 2}, {0.5f, 0.25f}), HasSubstr("exceeds"));
}

TEST(Route, GivesTiesToTheLowerId) {
  const Router router = {.rule = RoutingRule::softmax, .experts = 4, .top_k = 3};
  EXPECT_EQ(wrong({router, kLogits}, {1, 2, 0}, {0.5f, 0.25f, 0.125f}), "");
  EXPECT_THAT(wrong({router, kLogits}, {1, 2, 3}, {0.5f, 0.25f, 0.125f}),
              HasSubstr("expert 0 is left out for 3"));
  EXPECT_THAT(wrong({router, kLogits}, {2, 1, 0}, {0.25f, 0.5f, 0.125f}),
              HasSubstr("expert 1 comes after 2"));
  EXPECT_THAT(wrong({router, kLogits}, {1, 1, 2}, {0.5f, 0.5f, 0.25f}), HasSubstr("twice"));
}

TEST(Route, LetsScoresThatRoundingCannotTellApartStandEitherWay) {
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 4, .top_k = 1, .renormalize = true};
  // sigmoid(20) and sigmoid(21) differ by 1.3e-9.
  EXPECT_EQ(wrong({router, {20.0f, 21.0f, 0.0f, 0.0f}}, {0}, {1.0f}), "");
  EXPECT_EQ(wrong({router, {20.0f, 21.0f, 0.0f, 0.0f}}, {1}, {1.0f}), "");
  EXPECT_NE(wrong({router, {20.0f, 21.0f, 0.0f, 0.0f}}, {2}, {1.0f}), "");
}

// Four groups of two, the two best taken; sigmoid(0) = 1/2, sigmoid(ln 3) = 3/4. With the bias:
// scores 1/2 + 1/2, 1/2, | 3/4, 3/4, | 1/2, 1/2, | 3/4, 1/2: group sums 3/2, 3/2, 1, 5/4. Groups 0
// and 1 win. Chosen on biased scores: 0 (1), then 2 (3/4). Weights are unbiased: 1/2 and 3/4,
// shares 0.4 and 0.6, times 2.5.
TEST(Route, ChoosesOnTheBiasAndWeighsWithout) {
  const float ln3 = 1.0986123f;
  const Router router = {.rule = RoutingRule::grouped_sigmoid,
                         .experts = 8,
                         .top_k = 2,
                         .renormalize = true,
                         .groups = 4,
                         .top_groups = 2,
                         .scaling_factor = 2.5};
  const Asked asked = {router, {0, 0, ln3, ln3, 0, 0, ln3, 0}, {0.5f, 0, 0, 0, 0, 0, 0, 0}};
  EXPECT_EQ(wrong(asked, {0, 2}, {1.0f, 1.5f}), "");
  EXPECT_THAT(wrong(asked, {0, 6}, {1.0f, 1.5f}), HasSubstr("of a group that is not chosen"));
  EXPECT_THAT(wrong(asked, {2, 3}, {1.25f, 1.25f}), HasSubstr("expert 0 is left out"));
  // The bias in the weight as well: 1 and 3/4.
  EXPECT_THAT(wrong(asked, {0, 2}, {2.5f * 1.0f / 1.75f, 2.5f * 0.75f / 1.75f}),
              HasSubstr("exceeds"));
}

TEST(Route, WeighsTheOneExpertOfLlama4ByItsSigmoid) {
  const Router router = {.rule = RoutingRule::sigmoid_top1, .experts = 4, .top_k = 1};
  EXPECT_EQ(wrong({router, {0, 1.0986123f, 0, 0}}, {1}, {0.75f}), "");
}

TEST(Route, IsDefinedWhereNothingIsLeft) {
  const Router softmax = {.rule = RoutingRule::softmax, .experts = 4, .top_k = 2};
  EXPECT_EQ(wrong({softmax, Floats(4, -kInfinity)}, {0, 1}, {0, 0}), "");
  EXPECT_NE(wrong({softmax, Floats(4, -kInfinity)}, {0, 1}, {kNan, kNan}), "");
  EXPECT_EQ(wrong({softmax, {kNan, 0, kNan, kNan}}, {1, 0}, {1, 0}), "");
  EXPECT_EQ(wrong({softmax, {kInfinity, 0, kInfinity, 0}}, {0, 2}, {0.5f, 0.5f}), "");
  const Router sigmoid = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 4, .top_k = 2, .renormalize = true};
  EXPECT_EQ(wrong({sigmoid, Floats(4, -kInfinity)}, {0, 1}, {0, 0}), "");
}

// sigmoid(-87) is 1.6e-38; fp32's normal numbers end at 1.2e-38.
TEST(Route, GivesNoWeightWhereEverySigmoidIsBelowWhatFp32Holds) {
  Router router = {.rule = RoutingRule::grouped_sigmoid, .experts = 4, .top_k = 2};
  router.renormalize = true;
  for (const float logit : {-88.0f, -200.0f, -1000.0f}) {
    EXPECT_EQ(wrong({router, {logit, logit, logit, logit}}, {0, 1}, {0, 0}), "");
    EXPECT_NE(wrong({router, {logit, logit, logit, logit}}, {0, 1}, {0.5f, 0.5f}), "");
  }
  EXPECT_EQ(wrong({router, {-80, -80, -80, -80}}, {0, 1}, {0.5f, 0.5f}), "");
}

TEST(Route, TakesEachExpertForAGroup) {
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 4, .top_k = 2, .groups = 4, .top_groups = 2};
  EXPECT_EQ(wrong({router, {0, 1.0986123f, -5, 0}}, {1, 0}, {0.75f, 0.5f}), "");
}

TEST(Route, AppendsSharedExpertsAtWeightOne) {
  const Router router = {
      .rule = RoutingRule::softmax, .experts = 4, .top_k = 2, .shared_experts = 2};
  const Asked asked = {router, kLogits, {}, "appended"};
  EXPECT_EQ(wrong(asked, {1, 2, 4, 5}, {0.5f, 0.25f, 1, 1}), "");
  EXPECT_THAT(wrong(asked, {1, 2, 5, 4}, {0.5f, 0.25f, 1, 1}), HasSubstr("shared expert 4"));
}

}  // namespace
}  // namespace moegauge
