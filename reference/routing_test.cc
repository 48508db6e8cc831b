#include "reference/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

RoutedTokens one(const Router& router, std::vector<float> logits, std::vector<float> bias = {}) {
  return route(router, logits, 1, bias);
}

// Logits ln 1, ln 2, ln 4, ln 1: probabilities 1/8, 2/8, 4/8, 1/8.
const std::vector<float> kPowers = {0.0f, std::log(2.0f), std::log(4.0f), 0.0f};

TEST(Routing, SoftmaxKeepsTheMassOfAllExperts) {
  const auto r = one({.rule = RoutingRule::softmax, .experts = 4, .top_k = 2}, kPowers);
  EXPECT_THAT(r.topk_ids, ElementsAre(2, 1));
  EXPECT_THAT(r.topk_weights, ElementsAre(FloatEq(0.5f), FloatEq(0.25f)));
}

TEST(Routing, RenormalisedSoftmaxSumsToOneOverTheChosen) {
  const Router router = {
      .rule = RoutingRule::softmax, .experts = 4, .top_k = 2, .renormalize = true};
  const auto r = one(router, kPowers);
  EXPECT_THAT(r.topk_ids, ElementsAre(2, 1));
  EXPECT_THAT(r.topk_weights, ElementsAre(FloatEq(2.0f / 3), FloatEq(1.0f / 3)));
}

TEST(Routing, SoftmaxAfterTopkEqualsRenormalisedSoftmax) {
  Router router = {.rule = RoutingRule::softmax, .experts = 4, .top_k = 3, .renormalize = true};
  const auto expected = one(router, {0.3f, -1.25f, 2.5f, 0.75f});
  router = {.rule = RoutingRule::softmax_after_topk, .experts = 4, .top_k = 3};
  const auto r = one(router, {0.3f, -1.25f, 2.5f, 0.75f});
  EXPECT_EQ(r.topk_ids, expected.topk_ids);
  EXPECT_EQ(r.topk_weights, expected.topk_weights);
}

TEST(Routing, TiesGoToTheLowerId) {
  const Router router = {.rule = RoutingRule::softmax, .experts = 4, .top_k = 3};
  EXPECT_THAT(one(router, {1, 1, 1, 1}).topk_ids, ElementsAre(0, 1, 2));
  EXPECT_THAT(one(router, {0, 1, 0, 1}).topk_ids, ElementsAre(1, 3, 0));
}

TEST(Routing, LargeLogitsDoNotOverflow) {
  const Router router = {.rule = RoutingRule::softmax, .experts = 3, .top_k = 2};
  const auto r = one(router, {1e30f, 1e30f, -1e30f});
  EXPECT_THAT(r.topk_weights, ElementsAre(0.5f, 0.5f));
}

TEST(Routing, AllLogitsMinusInfinityGiveTheLowestIdsAtWeightZero) {
  for (const bool renormalize : {false, true}) {
    const Router router = {
        .rule = RoutingRule::softmax, .experts = 3, .top_k = 2, .renormalize = renormalize};
    const auto r = one(router, {-kInf, -kInf, -kInf});
    EXPECT_THAT(r.topk_ids, ElementsAre(0, 1));
    EXPECT_THAT(r.topk_weights, ElementsAre(0.0f, 0.0f));
  }
}

TEST(Routing, InfiniteLogitsShareTheSoftmax) {
  const Router router = {.rule = RoutingRule::softmax, .experts = 4, .top_k = 3};
  const auto r = one(router, {5, kInf, -kInf, kInf});
  EXPECT_THAT(r.topk_ids, ElementsAre(1, 3, 0));
  EXPECT_THAT(r.topk_weights, ElementsAre(0.5f, 0.5f, 0.0f));
}

TEST(Routing, ANanLogitIsNeverPreferredAndNeverSpreads) {
  Router router = {.rule = RoutingRule::softmax, .experts = 3, .top_k = 2};
  const auto soft = one(router, {kNan, 0, 0});
  EXPECT_THAT(soft.topk_ids, ElementsAre(1, 2));
  EXPECT_THAT(soft.topk_weights, ElementsAre(0.5f, 0.5f));

  router.rule = RoutingRule::grouped_sigmoid;
  // The bias of expert 0 would win if its NaN were taken for a score of 0.
  const auto grouped = one(router, {kNan, 0, 0}, {9, 0, 0});
  EXPECT_THAT(grouped.topk_ids, ElementsAre(1, 2));
  EXPECT_THAT(grouped.topk_weights, ElementsAre(0.5f, 0.5f));

  router = {.rule = RoutingRule::sigmoid_top1, .experts = 2, .top_k = 1};
  const auto none = one(router, {kNan, kNan});
  EXPECT_THAT(none.topk_ids, ElementsAre(0));
  EXPECT_THAT(none.topk_weights, ElementsAre(0.0f));
}

// Sigmoids 1/2, 2/3, 3/4, 4/5, 1/2, 9/10 of logits 0, ln 2, ln 3, ln 4, 0, ln 9.
const std::vector<float> kSigmoids = {0.0f,           std::log(2.0f), std::log(3.0f),
                                      std::log(4.0f), 0.0f,           std::log(9.0f)};

TEST(Routing, GroupedSigmoidChoosesGroupsByTheirTopTwo) {
  // Groups {1/2, 2/3} = 1.167, {3/4, 4/5} = 1.55, {1/2, 9/10} = 1.4: the best is the second,
  // although the best expert is in the third.
  const Router router = {.rule = RoutingRule::grouped_sigmoid,
                         .experts = 6,
                         .top_k = 2,
                         .renormalize = true,
                         .groups = 3,
                         .top_groups = 1,
                         .scaling_factor = 2.5};
  const auto r = one(router, kSigmoids);
  EXPECT_THAT(r.topk_ids, ElementsAre(3, 2));
  // 0.8 / 1.55 * 2.5 and 0.75 / 1.55 * 2.5.
  EXPECT_THAT(r.topk_weights,
              ElementsAre(FloatNear(1.2903226f, 1e-6f), FloatNear(1.2096774f, 1e-6f)));
}

TEST(Routing, TheCorrectionBiasChoosesButDoesNotWeigh) {
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 6, .top_k = 2, .groups = 3, .top_groups = 2};
  // Biased: {0.5, 1.667} = 2.167, {0.75, 0.8} = 1.55, {0.5, 0.9} = 1.4: groups 0 and 1, of which
  // expert 1 (1.667) and expert 3 (0.8) lead; the weights are the unbiased 2/3 and 4/5.
  const auto r = one(router, kSigmoids, {0, 1, 0, 0, 0, 0});
  EXPECT_THAT(r.topk_ids, ElementsAre(1, 3));
  EXPECT_THAT(r.topk_weights, ElementsAre(FloatNear(2.0f / 3, 1e-6f), FloatNear(0.8f, 1e-6f)));
}

TEST(Routing, ExpertsOfOtherGroupsAreNeverTaken) {
  // The third expert of the chosen group is at -infinity; those outside must not replace it.
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 6, .top_k = 3, .groups = 2, .top_groups = 1};
  const auto r = one(router, {0, 0, 0, 5, 5, 5}, {0, 0, 0, 0, 0, -kInf});
  EXPECT_THAT(r.topk_ids, ElementsAre(3, 4, 5));
}

TEST(Routing, AGroupOfOneExpertIsScoredByIt) {
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 6, .top_k = 2, .groups = 6, .top_groups = 2};
  EXPECT_THAT(one(router, kSigmoids).topk_ids, ElementsAre(5, 3));
}

TEST(Routing, GroupTiesGoToTheLowerGroup) {
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 4, .top_k = 2, .groups = 2, .top_groups = 1};
  EXPECT_THAT(one(router, {1, 2, 2, 1}).topk_ids, ElementsAre(1, 0));
}

TEST(Routing, AllSigmoidsZeroRenormaliseToZero) {
  const Router router = {
      .rule = RoutingRule::grouped_sigmoid, .experts = 2, .top_k = 2, .renormalize = true};
  EXPECT_THAT(one(router, {-kInf, -kInf}).topk_weights, ElementsAre(0.0f, 0.0f));
}

TEST(Routing, SigmoidTop1WeighsByTheSigmoidOfItsLogit) {
  const Router router = {.rule = RoutingRule::sigmoid_top1, .experts = 3, .top_k = 1};
  const auto r = one(router, {0, std::log(3.0f), -2});
  EXPECT_THAT(r.topk_ids, ElementsAre(1));
  EXPECT_THAT(r.topk_weights, ElementsAre(FloatEq(0.75f)));
}

TEST(Routing, TokensAreIndependentAndNoTokensGiveNothing) {
  const Router router = {.rule = RoutingRule::softmax, .experts = 2, .top_k = 1};
  const auto r = route(router, std::vector<float>{0, 1, 1, 0}, 2);
  EXPECT_THAT(r.topk_ids, ElementsAre(1, 0));
  EXPECT_TRUE(route(router, {}, 0).topk_ids.empty());
}

std::string error_of(const Router& router, std::size_t logits) {
  try {
    route(router, std::vector<float>(logits), 1);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(Routing, NumbersThatDoNotFitAreRefused) {
  EXPECT_THAT(error_of({.experts = 4, .top_k = 5}, 4), HasSubstr("top_k 5; 1 to 4"));
  EXPECT_THAT(error_of({.experts = 4, .top_k = 1}, 3), HasSubstr("3 logits"));
  EXPECT_THAT(error_of({.rule = RoutingRule::sigmoid_top1, .experts = 4, .top_k = 2}, 4),
              HasSubstr("sigmoid_top1 with top_k 2"));
  EXPECT_THAT(
      error_of({.rule = RoutingRule::grouped_sigmoid, .experts = 4, .top_k = 1, .groups = 3}, 4),
      HasSubstr("4 experts in 3 groups"));
  EXPECT_THAT(error_of({.rule = RoutingRule::grouped_sigmoid,
                        .experts = 4,
                        .top_k = 3,
                        .groups = 2,
                        .top_groups = 1},
                       4),
              HasSubstr("top_k 3; at most 2"));
}

TEST(Routing, NamesGoBothWays) {
  for (const auto name : {"softmax", "softmax_after_topk", "grouped_sigmoid", "sigmoid_top1"}) {
    ASSERT_TRUE(routing_rule_from(name));
    EXPECT_EQ(to_string(*routing_rule_from(name)), name);
  }
  EXPECT_FALSE(routing_rule_from("sotfmax"));
}

}  // namespace
}  // namespace moegauge
