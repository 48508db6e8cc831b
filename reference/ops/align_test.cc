#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/base/input_error.h"
#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Ids = std::vector<std::int32_t>;

// Three tokens, two slots, four experts; worked out by hand: expert 0 serves pair 1, expert 2 the
// pairs 0, 3 and 4, expert 3 pair 2, and pair 5 is dropped.
const Ids kIds = {2, 0, 3, 2, 2, -1};

Layer layer(std::vector<std::int32_t> expert_map = {}) {
  return {.experts = 4,
          .top_k = 2,
          .hidden_size = 32,
          .intermediate_size = 32,
          .expert_map = std::move(expert_map)};
}

OpErrors judged(const OpProblem& p, const Ids& sorted, const Ids& experts, std::int32_t padded) {
  std::vector<Tensor> inputs = {tensor_of(p.inputs, "topk_ids", kIds)};
  if (!p.layer.expert_map.empty()) {
    inputs.push_back(tensor_of(p.inputs, "expert_map", p.layer.expert_map));
  }
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "sorted_token_ids", sorted),
                                       tensor_of(p.outputs, "expert_ids", experts),
                                       tensor_of(p.outputs, "num_tokens_post_padded", Ids{padded})};
  return op_named("align").truth(p, {}, inputs, nullptr, 1)->judge(outputs);
}

// Room for 6 pairs and one empty entry of each of 4 experts.
const Ids kSorted = {1, 6, 0, 3, 4, 6, 2, 6, 6, 6};
const Ids kExperts = {0, 2, 2, 3, 77};  // beyond the last block anything may stand

TEST(Align, GroupsPairsByExpertInWholeBlocksPaddedWithTheNumberOfPairs) {
  const OpProblem p = op_problem("align", layer(), "bf16", 3, {{"block_size", 2}});
  const OpErrors errors = judged(p, kSorted, kExperts, 8);
  EXPECT_FALSE(errors.wrong) << *errors.wrong;
  EXPECT_EQ(errors.implementation.relative_l2, 0);
  EXPECT_EQ(errors.implementation.matched, 1);
}

TEST(Align, LeavesTheOrderWithinAnExpertOpen) {
  const OpProblem p = op_problem("align", layer(), "bf16", 3, {{"block_size", 2}});
  EXPECT_FALSE(judged(p, {1, 6, 4, 0, 3, 6, 2, 6, 6, 6}, kExperts, 8).wrong);
  EXPECT_TRUE(op_named("align").order_is_open());
}

TEST(Align, NamesTheFirstWrongEntry) {
  const OpProblem p = op_problem("align", layer(), "bf16", 3, {{"block_size", 2}});
  const auto wrong = [&](const Ids& sorted, const Ids& experts, std::int32_t padded) {
    return judged(p, sorted, experts, padded).wrong.value_or("");
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(wrong(kSorted, kExperts, 6), HasSubstr("num_tokens_post_padded[0] is 6, 8 is right"));
  EXPECT_THAT(wrong(kSorted, {0, 2, 1, 3, 0}, 8), HasSubstr("expert_ids[2] is 1, 2 is right"));
  // A pair twice and another not at all; padding before a pair; the rest not filled.
  EXPECT_THAT(wrong({1, 6, 0, 3, 3, 6, 2, 6, 6, 6}, kExperts, 8),
              HasSubstr("sorted_token_ids[4] is 3, 4 is right"));
  EXPECT_THAT(wrong({6, 1, 0, 3, 4, 6, 2, 6, 6, 6}, kExperts, 8),
              HasSubstr("sorted_token_ids[0] is 6, 1 is right"));
  EXPECT_THAT(wrong({1, 6, 0, 3, 4, 6, 2, 6, 6, 0}, kExperts, 8),
              HasSubstr("sorted_token_ids[9] is 0, 6 is right"));
}

TEST(Align, GivesExpertsOfOtherRanksBlocksOfExpertMinusOne) {
  const OpProblem p = op_problem("align", layer({-1, 0, 1, -1}), "bf16", 3, {{"block_size", 2}});
  EXPECT_FALSE(judged(p, kSorted, {-1, 1, 1, -1, 0}, 8).wrong);
}

TEST(Align, OrSkipsThem) {
  const OpProblem p = op_problem("align", layer({-1, 0, 1, -1}), "bf16", 3,
                                 {{"block_size", 2}, {"remote_experts", "skipped"}});
  // Room for 6 pairs and an empty entry of each of 2 local experts.
  EXPECT_FALSE(judged(p, {0, 3, 4, 6, 6, 6, 6, 6}, {1, 1, 0, 0}, 4).wrong);
}

TEST(Align, HasRoomForOneBlockPerPairWhereExpertsAreMany) {
  Layer many = layer();
  many.experts = 4096;
  const OpProblem p = op_problem("align", many, "bf16", 3, {{"block_size", 64}});
  EXPECT_EQ(p.outputs[0].shape, (std::vector<std::int64_t>{6 * 64}));
  EXPECT_EQ(p.outputs[1].shape, (std::vector<std::int64_t>{6}));
}

TEST(Align, RefusesIdsThatAreNoExperts) {
  const OpProblem p = op_problem("align", layer(), "bf16", 1);
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "topk_ids", Ids{0, 4})};
  EXPECT_THROW(op_named("align").truth(p, {}, inputs, nullptr, 1), InputError);
}

TEST(Align, OfNoTokensIsEmpty) {
  const OpProblem p = op_problem("align", layer(), "bf16", 0);
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "topk_ids", Ids{})};
  const auto truth = op_named("align").truth(p, {}, inputs, nullptr, 1);
  EXPECT_FALSE(truth->judge(make_tensors(p.outputs)).wrong);
}

}  // namespace
}  // namespace moegauge
