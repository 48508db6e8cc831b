// What can be proven of the kernels around the library's GEMMs without a GPU: they compile for
// Hopper for every scheme and kind of layer, without spills. And what is counted on the host.
#include "kernels/cublaslt/program.h"

#include <gtest/gtest.h>

#include <chrono>

#include "kernels/cublaslt/layer_plan.h"

namespace moegauge::cublaslt {
namespace {

const Layer plain = {.experts = 8, .top_k = 2, .hidden_size = 288, .intermediate_size = 80};

Problem problem_of(const char* scheme, const Layer& layer) {
  return {layer, make_scheme(scheme), 0};
}

// Every time another text: NVRTC keeps what it compiled, and then tells no resources.
void expect_clean(const Problem& problem) {
  SCOPED_TRACE(problem.scheme->name());
  const LibraryScheme* scheme = find_scheme(*problem.scheme);
  ASSERT_NE(scheme, nullptr);
  cuda::CompileRequest request = program_request(problem, *scheme);
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  request.main.text += "// " + std::to_string(now) + "\n";
  const auto cubin = cuda::compile(request);
  ASSERT_TRUE(cubin.has_value()) << cubin.error().log;
  EXPECT_EQ(cubin->names.size(), request.kernels.size());
  const cuda::ResourceUse use = cuda::resources_in(cubin->log);
  EXPECT_EQ(use.spill_stores_bytes + use.spill_loads_bytes, 0) << cubin->log;
  EXPECT_EQ(use.stack_bytes, 0) << cubin->log;
}

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto version = cuda::compiler_version(); !version) {
      GTEST_SKIP() << version.error().sentence;
    }
  }
};

TEST_F(ProgramTest, CompilesForEveryScheme) {
  for (const char* scheme : {"bf16", "fp8_tensor", "fp8_tensor_static", "fp8_ptpc", "fp8_block",
                             "w4a16_g32_zp_actorder", "w8a16"}) {
    expect_clean(problem_of(scheme, plain));
  }
}

TEST_F(ProgramTest, CompilesForEveryKindOfLayer) {
  Layer gpt_oss = {.experts = 32, .top_k = 4, .hidden_size = 2880, .intermediate_size = 2880};
  gpt_oss.activation.kind = ActivationKind::swiglu_clamped;
  gpt_oss.gate_up_order = GateUpOrder::interleaved;
  gpt_oss.expert_bias = true;
  expect_clean(problem_of("bf16", gpt_oss));
  Layer scout = {.experts = 16, .top_k = 1, .hidden_size = 5120, .intermediate_size = 2048};
  scout.router_weight_on_input = true;
  expect_clean(problem_of("fp8_ptpc", scout));
  Layer half = plain;
  half.dtype = Dtype::fp16;
  half.activation.kind = ActivationKind::gelu_and_mul;
  expect_clean(problem_of("w4a16_g128", half));
  const Layer wide = {.experts = 8, .top_k = 2, .hidden_size = 4096, .intermediate_size = 14336};
  expect_clean(problem_of("fp8_tensor", wide));
}

TEST(Numerics, RoundLateWhereSomethingIsAddedFirst) {
  const LibraryScheme& half = *find_scheme(*make_scheme("bf16"));
  EXPECT_EQ(numerics_of(plain, half).gemm1_out, Precision::activation_dtype);
  Layer biased = plain;
  biased.expert_bias = true;
  EXPECT_EQ(numerics_of(biased, half).gemm1_out, Precision::fp32);
  EXPECT_EQ(numerics_of(biased, half).gemm2_out, Precision::activation_dtype);
}

TEST(CountRows, LeavesOutDroppedPairsAndOtherRanks) {
  Layer layer = plain;
  layer.expert_map = {0, -1, 1, -1, -1, -1, -1, 2};
  const std::vector<std::int32_t> ids = {0, 1, 2, -1, 7, 7, 2, 2};
  EXPECT_EQ(count_rows(layer, ids), (std::vector<std::int32_t>{1, 3, 2}));
}

}  // namespace
}  // namespace moegauge::cublaslt
