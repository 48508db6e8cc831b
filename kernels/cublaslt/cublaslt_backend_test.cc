// The library baseline on a device (kernels/nvidia/on_device_testing.h), and what it refuses.
#include <gtest/gtest.h>

#include "kernels/nvidia/on_device_testing.h"

namespace moegauge {

const Backend& cublaslt_backend();

namespace {

using on_device::first_local;
using on_device::LayerCase;

Layer in_fp16(Layer layer) {
  layer.dtype = Dtype::fp16;
  return layer;
}

std::vector<LayerCase> every_scheme() {
  // More experts than are local; the last local one has rows that end at no multiple of four.
  Layer ragged = {.experts = 8, .top_k = 3, .hidden_size = 336, .intermediate_size = 208};
  ragged.expert_map = first_local(8, 5);
  const Layer many = {.experts = 64, .top_k = 8, .hidden_size = 512, .intermediate_size = 128};
  Layer scaled_first = {.experts = 6, .top_k = 1, .hidden_size = 352, .intermediate_size = 192};
  scaled_first.router_weight_on_input = true;
  Layer biased = {.experts = 8, .top_k = 2, .hidden_size = 496, .intermediate_size = 256};
  biased.activation.kind = ActivationKind::swiglu_clamped;
  biased.gate_up_order = GateUpOrder::interleaved;
  biased.expert_bias = true;
  Layer gelu = ragged;
  gelu.activation.kind = ActivationKind::gelu_and_mul;
  gelu.expert_bias = true;
  gelu.adds_w2_bias = false;
  Layer gelu_tanh = many;
  gelu_tanh.activation.kind = ActivationKind::gelu_tanh_and_mul;
  std::vector<LayerCase> cases = {
      {"bf16_ragged", "bf16", ragged, {{}}},
      {"bf16_biased", "bf16", biased, {{}}},
      {"bf16_on_input", "bf16", scaled_first, {{}}},
      {"bf16_gelu", "bf16", gelu, {{}}},
      {"fp16_many", "fp16", in_fp16(many), {{}}},
      {"tensor_ragged", "fp8_tensor", ragged, {{}}},
      {"tensor_biased", "fp8_tensor", biased, {{}}},
      {"static_on_input", "fp8_tensor_static", scaled_first, {{}}},
      {"fp16_tensor", "fp8_tensor", in_fp16(ragged), {{}}},
      {"ptpc_ragged", "fp8_ptpc", ragged, {{}}},
      {"ptpc_on_input", "fp8_ptpc", scaled_first, {{}}},
      {"ptpc_many", "fp8_ptpc", many, {{}}},
      {"block_ragged", "fp8_block", ragged, {{}}},
      {"block_many", "fp8_block", gelu_tanh, {{}}},
      {"w4", "w4a16_g128", many, {{}}},
      {"w4_ordered", "w4a16_g32_zp_actorder", ragged, {{}}},
      {"fp16_w4_biased", "w4a16_channel", in_fp16(biased), {{}}},
      {"w8", "w8a16_g64_zp", ragged, {{}}},
  };
  return cases;
}

std::optional<Refusal> refusal_of(const char* scheme, const Layer& layer) {
  return cublaslt_backend().refuses({layer, make_scheme(scheme), 0});
}

// The same answer with and without a device: what is refused then is the device that is not here.
TEST(Refusals, SchemesThatTheLibraryMultipliesAreServed) {
  for (const LayerCase& c : every_scheme()) {
    const auto refusal = refusal_of(c.scheme, c.layer);
    EXPECT_TRUE(!refusal || refusal->reason == RefusalReason::device_absent) << c.name;
  }
}

TEST(Refusals, OtherSchemesAreRefusedByNameWithThoseServed) {
  for (const char* scheme : {"mxfp8", "mxfp4", "w8a8_int8", "fp8_block_fnuz"}) {
    const auto refusal = refusal_of(scheme, every_scheme()[0].layer);
    ASSERT_TRUE(refusal.has_value()) << scheme;
    EXPECT_EQ(refusal->reason, RefusalReason::scheme);
    EXPECT_EQ(
        refusal->sentence,
        "cuBLASLt has no GEMM for scheme " + std::string(scheme) +
            " on Hopper; with it are served bf16, fp16, fp8_tensor, fp8_ptpc, fp8_block, w4a16, "
            "w8a16");
  }
}

TEST(Refusals, RowsOfNoWhole16BytesAreRefusedWithTheNumbers) {
  Layer layer = {.experts = 8, .top_k = 2, .hidden_size = 512, .intermediate_size = 200};
  ASSERT_TRUE(refusal_of("fp8_ptpc", layer).has_value());
  EXPECT_EQ(
      refusal_of("fp8_ptpc", layer)->sentence,
      "intermediate_size is 200; the kernels need a multiple of 16 (cuBLASLt's FP8 GEMMs contract "
      "multiples of 16)");
  const auto in_16_bits = refusal_of("bf16", layer);
  EXPECT_TRUE(!in_16_bits || in_16_bits->reason == RefusalReason::device_absent);
  layer.intermediate_size = 100;
  EXPECT_EQ(refusal_of("bf16", layer)->sentence,
            "intermediate_size is 100; the kernels need a multiple of 8 (16-byte rows)");
  layer = {.experts = 8, .top_k = 2, .hidden_size = 500, .intermediate_size = 256};
  EXPECT_EQ(refusal_of("bf16", layer)->sentence,
            "hidden_size is 500; the kernels need a multiple of 16 (16-byte rows)");
}

TEST(Refusals, ThereIsNothingToConfigure) {
  const Problem problem = {every_scheme()[0].layer, make_scheme("bf16"), 4};
  EXPECT_TRUE(cublaslt_backend().default_config(problem).values.empty());
  const auto refusal = cublaslt_backend().refuses_config(problem, {{{"BLOCK_SIZE_M", 64}}});
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, RefusalReason::config_unknown_key);
  EXPECT_NE(refusal->sentence.find("BLOCK_SIZE_M"), std::string::npos);
}

}  // namespace

namespace on_device {

const Backend& backend() { return cublaslt_backend(); }
std::vector<LayerCase> layer_cases() { return every_scheme(); }

}  // namespace on_device
}  // namespace moegauge
