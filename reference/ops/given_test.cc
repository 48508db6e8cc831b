#include "reference/ops/given.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/base/input_error.h"
#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;

GivenTensor tensor(const std::string& name, std::vector<std::int64_t> shape) {
  return {.name = name, .shape = std::move(shape), .text = "F32 [..]"};
}

// What an op makes of these tensors where nothing else is known.
OpProblem inferred(std::string_view op, std::vector<GivenTensor> tensors, std::int64_t top_k = 0) {
  OpProblem p;
  p.op = op;
  p.scheme = make_scheme("bf16");
  p.layer.top_k = top_k;
  p.tokens = -1;
  for (const OpField& field : op_named(op).fields()) p.fields[field.name] = field.fallback;
  op_named(op).infer({"f.safetensors", std::move(tensors)}, p);
  return p;
}

TEST(Given, SizesAreThoseOfTheTensors) {
  const OpProblem quantize = inferred("quantize", {tensor("x", {5, 320})});
  EXPECT_EQ(quantize.tokens, 5);
  EXPECT_EQ(quantize.layer.hidden_size, 320);
  const OpProblem activation = inferred("activation", {tensor("gate_up", {5, 320})});
  EXPECT_EQ(activation.layer.intermediate_size, 160);
  const OpProblem reduce = inferred("reduce", {tensor("pairs", {5, 3, 7})});
  EXPECT_EQ(reduce.layer.top_k, 3);
  EXPECT_EQ(reduce.layer.hidden_size, 7);
}

TEST(Given, WhatNoTensorSaysStaysUnknown) {
  EXPECT_EQ(inferred("quantize", {}).tokens, -1);
  EXPECT_EQ(inferred("quantize", {}).layer.hidden_size, 0);
  EXPECT_EQ(inferred("route", {tensor("router_logits", {5, 8})}).layer.top_k, 0);
}

TEST(Given, AlignHasAsManyExpertsAsTheIdsNameWhereNothingElseSays) {
  GivenTensor ids = tensor("topk_ids", {2, 2});
  ids.integers = [] { return std::vector<std::int32_t>{0, 6, -1, 3}; };
  EXPECT_EQ(inferred("align", {ids}).layer.experts, 7);
  EXPECT_EQ(inferred("align", {ids, tensor("expert_map", {9})}).layer.experts, 9);
}

TEST(Given, CountsOfRowsAndAxesOfATellTheLayout) {
  const GivenTensor b = tensor("b", {3, 48, 160}), counts = tensor("rows_per_expert", {3});
  const OpProblem contiguous =
      inferred("grouped_gemm", {tensor("a", {12, 160}), b, counts}, /*top_k=*/2);
  EXPECT_EQ(contiguous.word("layout"), "contiguous");
  EXPECT_EQ(contiguous.tokens, 6);
  EXPECT_EQ(contiguous.layer.intermediate_size, 24);
  const OpProblem batched = inferred("grouped_gemm", {tensor("a", {3, 12, 160}), b, counts});
  EXPECT_EQ(batched.word("layout"), "batched");
  EXPECT_EQ(batched.tokens, 12);
  EXPECT_EQ(inferred("grouped_gemm", {tensor("a", {4, 160}), b}, 2).word("layout"), "sorted");
  const OpProblem odd = inferred("grouped_gemm", {tensor("a", {4, 16}), tensor("b", {1, 5, 16}),
                                                  tensor("rows_per_expert", {1})});
  EXPECT_EQ(odd.word("gemm"), "down");
  EXPECT_EQ(odd.layer.hidden_size, 5);
}

TEST(Given, ARankMayHoldFewerExpertsThanTokensChoose) {
  const OpProblem p =
      inferred("grouped_gemm",
               {tensor("a", {8, 16}), tensor("b", {2, 4, 16}), tensor("rows_per_expert", {2})}, 4);
  EXPECT_EQ(p.layer.experts, 4);
  EXPECT_EQ(p.layer.local_experts(), 2);
}

TEST(Given, AWrongNumberOfAxesIsRefused) {
  try {
    inferred("quantize", {tensor("x", {5, 2, 16})});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "f.safetensors: tensor \"x\" is F32 [..]; it has 2 axes");
  }
}

}  // namespace
}  // namespace moegauge
