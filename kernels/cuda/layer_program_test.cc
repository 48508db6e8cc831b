// What can be proven of the kernels without a GPU: every configuration that the heuristic picks for
// the layers people serve compiles for Hopper, without spills and without serialised matrix
// instructions. The program itself asserts that host and device agree on sizes.
#include "kernels/cuda/layer_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels/nvidia/runtime/ceilings.h"
#include "reference/base/thread_pool.h"

namespace moegauge::cuda {
namespace {

constexpr std::int64_t hopper_shared_bytes =
    232448;  // CUDA C++ programming guide, compute capability 9.0

struct Served {
  const char* what;
  const char* scheme;
  Layer layer;
};

std::vector<std::int32_t> first_local(std::size_t experts, std::int32_t local) {
  std::vector<std::int32_t> map(experts, -1);
  for (std::int32_t e = 0; e < local; ++e) map[static_cast<std::size_t>(e)] = e;
  return map;
}

Layer half(Layer layer) {
  layer.dtype = Dtype::fp16;
  return layer;
}

std::vector<Served> layers() {
  Layer qwen3 = {.experts = 128, .top_k = 8, .hidden_size = 2048, .intermediate_size = 768};
  Layer ragged = {.experts = 8, .top_k = 2, .hidden_size = 336, .intermediate_size = 192};
  Layer deepseek = {.experts = 256, .top_k = 8, .hidden_size = 7168, .intermediate_size = 2048};
  deepseek.expert_map = first_local(256, 32);
  Layer scout = {.experts = 16, .top_k = 1, .hidden_size = 5120, .intermediate_size = 2048};
  scout.router_weight_on_input = true;
  Layer mixtral = {.experts = 8, .top_k = 2, .hidden_size = 4096, .intermediate_size = 7168};
  Layer gpt_oss = {.experts = 32, .top_k = 4, .hidden_size = 2880, .intermediate_size = 2880};
  gpt_oss.activation.kind = ActivationKind::swiglu_clamped;
  gpt_oss.gate_up_order = GateUpOrder::interleaved;
  gpt_oss.expert_bias = true;
  const Layer narrow = {.experts = 8, .top_k = 2, .hidden_size = 320, .intermediate_size = 80};
  Layer gelu = ragged;
  gelu.activation.kind = ActivationKind::gelu_and_mul;
  gelu.expert_bias = true;
  return {{"qwen3-30b-a3b", "fp8_block", qwen3},
          {"deepseek-v3 ep8", "fp8_block", deepseek},
          {"llama-4-scout tp4", "fp8_ptpc", scout},
          {"mixtral-8x7b tp2", "bf16", mixtral},
          {"ragged", "fp8_block", ragged},
          {"gpt-oss-20b's kind", "bf16", gpt_oss},
          {"gelu with biases", "fp8_block", gelu},
          {"narrow", "fp8_block", narrow},
          {"ragged", "fp8_tensor", ragged},
          {"llama-4-scout tp4", "fp8_tensor_static", scout},
          {"qwen3-30b-a3b", "mxfp8", qwen3},
          {"gelu with biases", "mxfp8", gelu},
          {"narrow", "mxfp8_floor", narrow},
          {"mixtral-8x7b tp2", "w8a8_int8", mixtral},
          {"ragged", "w8a8_int8", ragged},
          {"mixtral-8x7b tp2", "fp16", half(mixtral)},
          {"ragged", "fp8_block", half(ragged)},
          {"gpt-oss-20b", "mxfp4", gpt_oss},
          {"ragged", "mxfp4", half(ragged)},
          {"ragged", "w4a16_g32_zp", half(ragged)},
          {"mixtral-8x7b tp2", "w4a16_g128", mixtral},
          {"ragged", "w4a16_g32_zp_actorder", ragged},
          {"ragged", "w4a16_g64_zp", ragged},
          {"ragged", "w8a16_g128_zp_actorder", ragged},
          {"ragged", "w8a16_g32_zp", ragged}};
}

class LayerProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto version = compiler_version(); !version) GTEST_SKIP() << version.error().sentence;
  }
};

// Every time another text: NVRTC keeps what it compiled, and then tells no resources.
void expect_clean(CompileRequest request, const std::string& what) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  request.main.text += "// " + std::to_string(now) + "\n";
  const auto cubin = compile(request);
  ASSERT_TRUE(cubin.has_value()) << what << ": " << cubin.error().log;
  const ResourceUse use = resources_in(cubin->log);
  EXPECT_EQ(use.spill_stores_bytes + use.spill_loads_bytes, 0) << what << ": " << cubin->log;
  EXPECT_EQ(use.stack_bytes, 0) << what << ": " << cubin->log;
  EXPECT_FALSE(use.serialized_wgmma) << what << ": " << cubin->log;
  EXPECT_GT(use.registers, 0) << what;
}

TEST_F(LayerProgramTest, EveryHeuristicConfigurationCompilesCleanly) {
  std::vector<std::pair<CompileRequest, std::string>> programs;
  for (const Served& served : layers()) {
    const auto scheme = make_scheme(served.scheme);
    const CudaScheme* cuda_scheme = find_scheme(*scheme, served.layer);
    ASSERT_NE(cuda_scheme, nullptr) << served.what;
    std::vector<std::string> seen;
    for (const std::int64_t tokens : {1, 16, 64, 256, 1024, 2048, 4096, 8192}) {
      const auto config = parse_config({}, served.layer, *cuda_scheme, tokens, hopper_shared_bytes);
      ASSERT_TRUE(config.has_value()) << config.error().sentence;
      CompileRequest request = program_request(served.layer, *cuda_scheme, *config, tokens);
      if (std::ranges::find(seen, request.main.text) != seen.end()) continue;
      seen.push_back(request.main.text);
      programs.emplace_back(std::move(request), std::string(served.what) + " " + served.scheme +
                                                    " M=" + std::to_string(tokens));
    }
  }
  ThreadPool pool(ThreadPool::usable_processors());
  pool.parallel_for(static_cast<std::int64_t>(programs.size()), [&](std::int64_t i) {
    const auto& [request, what] = programs[static_cast<std::size_t>(i)];
    expect_clean(request, what);
  });
}

TEST_F(LayerProgramTest, CeilingsCompileCleanly) { expect_clean(ceilings_request(), "ceilings"); }

TEST_F(LayerProgramTest, AShapeThatTheKernelsDoNotHaveIsACompileErrorWithItsReason) {
  Layer layer = layers()[0].layer;
  layer.hidden_size = 1000;  // no multiple of 16
  const auto scheme = make_scheme("fp8_block");
  const CudaScheme* cuda_scheme = find_scheme(*scheme, layer);
  const auto cubin =
      compile(program_request(layer, *cuda_scheme, heuristic_config(layer, *cuda_scheme, 1), 1));
  ASSERT_FALSE(cubin.has_value());
  EXPECT_NE(cubin.error().log.find("K must be a multiple of 16"), std::string::npos)
      << cubin.error().log;
}

}  // namespace
}  // namespace moegauge::cuda
