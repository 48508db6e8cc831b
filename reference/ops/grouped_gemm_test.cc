#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "reference/base/input_error.h"
#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Bits = std::vector<std::uint16_t>;
using Ids = std::vector<std::int32_t>;

// bf16 of small integers.
std::uint16_t bits(int value) {
  const auto f = static_cast<float>(value);
  std::uint32_t word = 0;
  std::memcpy(&word, &f, sizeof word);
  return static_cast<std::uint16_t>(word >> 16);
}
Bits bits(const std::vector<int>& values) {
  Bits all;
  for (const int v : values) all.push_back(bits(v));
  return all;
}

// Two experts, K = 2, N = 1: b is [2N, K] each: expert 0 (1 2; 3 4), expert 1 (5 6; 7 8).
Layer layer(std::int64_t top_k = 1) {
  return {.experts = 2, .top_k = top_k, .hidden_size = 2, .intermediate_size = 1};
}
const std::vector<int> kB = {1, 2, 3, 4, 5, 6, 7, 8};

// Three tokens (1 0), (0 1), (1 1) to experts 1, 0, 1. By hand: (1 0) over expert 1: 5 7; (0 1)
// over expert 0: 2 4; (1 1) over expert 1: 11 15.
OpErrors judged(const std::string& layout, const std::vector<int>& a, const OpFields& fields,
                const std::vector<std::pair<std::string, Ids>>& places,
                const std::vector<int>& output) {
  OpFields all = fields;
  all["layout"] = layout;
  const OpProblem p = op_problem("grouped_gemm", layer(), "bf16", 3, all);
  const std::vector<Tensor> weights = {tensor_of(p.weights, "b", bits(kB))};
  std::vector<Tensor> inputs = {tensor_of(p.inputs, "a", bits(a))};
  for (const auto& [name, values] : places) inputs.push_back(tensor_of(p.inputs, name, values));
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "output", bits(output))};
  return op_named("grouped_gemm").truth(p, weights, inputs, nullptr, 1)->judge(outputs);
}

TEST(GroupedGemm, ReadsRowsThroughTheSortedIds) {
  const std::vector<std::pair<std::string, Ids>> places = {
      {"sorted_token_ids", {1, 3, 0, 2, 3}},  // room: 3 pairs and an empty entry of each expert
      {"expert_ids", {0, 1, -1}},
      {"num_tokens_post_padded", {4}}};
  const OpErrors errors =
      judged("sorted", {1, 0, 0, 1, 1, 1}, {{"block_size", 2}}, places, {5, 7, 2, 4, 11, 15});
  EXPECT_FALSE(errors.wrong) << *errors.wrong;
  EXPECT_EQ(errors.implementation.relative_l2, 0);
  EXPECT_TRUE(
      judged("sorted", {1, 0, 0, 1, 1, 1}, {{"block_size", 2}}, places, {5, 7, 6, 8, 11, 15}).wrong)
      << "the other expert's matrix";
}

TEST(GroupedGemm, LeavesRowsThatNoEntryNamesUndefined) {
  EXPECT_FALSE(judged("sorted", {1, 0, 0, 1, 1, 1}, {{"block_size", 2}},
                      {{"sorted_token_ids", {1, 3, 0, 2, 3}},
                       {"expert_ids", {0, -1, -1}},
                       {"num_tokens_post_padded", {4}}},
                      {99, 99, 2, 4, 99, 99})
                   .wrong);
}

TEST(GroupedGemm, TakesEachExpertsRowsInTurn) {
  EXPECT_FALSE(judged("contiguous", {0, 1, 1, 0, 1, 1}, {}, {{"rows_per_expert", {1, 2}}},
                      {2, 4, 5, 7, 11, 15})
                   .wrong);
  EXPECT_FALSE(judged("contiguous", {0, 1, 1, 0, 1, 1}, {}, {{"rows_per_expert", {1, 1}}},
                      {2, 4, 5, 7, 99, 99})
                   .wrong)
      << "rows beyond the counts are not looked at";
  EXPECT_THROW(judged("contiguous", {0, 1, 1, 0, 1, 1}, {}, {{"rows_per_expert", {2, 2}}},
                      {0, 0, 0, 0, 0, 0}),
               InputError);
}

TEST(GroupedGemm, HasRoomForEveryTokenOfEveryExpertInABatch) {
  EXPECT_FALSE(judged("batched", {0, 1, 9, 9, 9, 9, 1, 0, 1, 1, 9, 9}, {},
                      {{"rows_per_expert", {1, 2}}}, {2, 4, 99, 99, 99, 99, 5, 7, 11, 15, 99, 99})
                   .wrong);
}

// E4M3: 1 = 0x38, 2 = 0x40. One block of b under scale 0.5 and one of a under scale 4: a (1 2) and
// b (2 1; 1 1) stand for (4 8) and (1 0.5; 0.5 0.5): 8 and 6.
TEST(GroupedGemm, DecodesBothOperandsByTheirScales) {
  Layer one = layer();
  one.experts = 1;
  const OpProblem p =
      op_problem("grouped_gemm", one, "fp8_block", 1, {{"layout", std::string("contiguous")}});
  using Codes = std::vector<std::uint8_t>;
  const std::vector<Tensor> weights = {tensor_of(p.weights, "b", Codes{0x40, 0x38, 0x38, 0x38}),
                                       tensor_of(p.weights, "b_scale", std::vector<float>{0.5f})};
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "a", Codes{0x38, 0x40}),
                                      tensor_of(p.inputs, "a_scale", std::vector<float>{4.0f}),
                                      tensor_of(p.inputs, "rows_per_expert", Ids{1})};
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "output", bits({8, 6}))};
  const auto truth = op_named("grouped_gemm").truth(p, weights, inputs, nullptr, 1);
  EXPECT_EQ(truth->judge(outputs).implementation.relative_l2, 0);
}

// 300 tokens drawn from a pool of 4 are 4 distinct ones, repeated.
TEST(GroupedGemm, RepeatsTokensOfAPool) {
  const OpProblem p = op_problem("grouped_gemm", layer(2), "bf16", 300);
  const auto inputs = op_named("grouped_gemm").draw_inputs(p, {.seed = 1, .pool = 4});
  std::set<std::vector<std::uint16_t>> rows;
  const auto a = inputs[0].as<std::uint16_t>();
  for (std::size_t m = 0; m < 300; ++m) rows.insert({a[2 * m], a[2 * m + 1]});
  EXPECT_LE(rows.size(), 4u);
}

TEST(GroupedGemm, CountsTheWorkOfTheExpertsThatRowsGoTo) {
  const OpProblem p =
      op_problem("grouped_gemm", layer(), "bf16", 3, {{"layout", std::string("contiguous")}});
  std::vector<Tensor> inputs = make_tensors(p.inputs);
  inputs[1].as<std::int32_t>()[1] = 2;
  const OpWork work = op_named("grouped_gemm").work(p, inputs);
  EXPECT_EQ(work.weight_bytes, 8);               // 4 elements of one of two experts
  EXPECT_EQ(work.flops, 2 * 2 * 2 * 2);          // 2 rows, 2 columns, 2 products each
  EXPECT_EQ(work.operand_bytes, 2 * 4 + 2 * 4);  // two rows of a, two of the output
}

}  // namespace
}  // namespace moegauge
