// Every kind of tile of every scheme on a device (kernels/nvidia/on_device_testing.h), and what is
// refused.
#include <gtest/gtest.h>

#include "kernels/nvidia/on_device_testing.h"

namespace moegauge {

const Backend& cuda_backend();

namespace {

using on_device::first_local;
using on_device::LayerCase;

Config split(std::int64_t tile, std::int64_t dealt) {
  return {{{"BLOCK_SIZE_M", tile},
           {"SPLIT_K", 1},
           {"SWAP_AB", 1},
           {"CLUSTER_SIZE", 1},
           {"DEALT", dealt}}};
}
Config whole(std::int64_t tile) {
  return {
      {{"BLOCK_SIZE_M", tile}, {"SPLIT_K", 0}, {"SWAP_AB", 1}, {"CLUSTER_SIZE", 1}, {"DEALT", 1}}};
}
Config with(Config config, const char* key, std::int64_t value) {
  config.values[key] = value;
  return config;
}
Config paired(std::int64_t tile) { return with(whole(tile), "CLUSTER_SIZE", 2); }
Config token_rows(std::int64_t cluster) {
  return {{{"BLOCK_SIZE_M", 128},
           {"SPLIT_K", 0},
           {"SWAP_AB", 0},
           {"CLUSTER_SIZE", cluster},
           {"DEALT", 1}}};
}
Layer in_fp16(Layer layer) {
  layer.dtype = Dtype::fp16;
  return layer;
}

// Widths that end inside a tile of 128 or 256 and inside a step of K, fewer local experts than
// global ones, and widths of whole tiles for the kinds that need them.
std::vector<LayerCase> every_kind_of_tile() {
  Layer ragged = {.experts = 8, .top_k = 3, .hidden_size = 336, .intermediate_size = 192};
  ragged.expert_map = first_local(8, 5);
  const Layer even = {.experts = 8, .top_k = 2, .hidden_size = 496, .intermediate_size = 256};
  Layer scaled_first = {.experts = 6, .top_k = 1, .hidden_size = 352, .intermediate_size = 192};
  scaled_first.router_weight_on_input = true;
  Layer scaled_even = {.experts = 4, .top_k = 1, .hidden_size = 496, .intermediate_size = 256};
  scaled_even.router_weight_on_input = true;
  Layer many = {.experts = 64, .top_k = 8, .hidden_size = 512, .intermediate_size = 128};
  // Up's blocks of scales begin at row 80 of w13, inside a warp's rows of h.
  const Layer fine = {.experts = 8, .top_k = 2, .hidden_size = 320, .intermediate_size = 80};
  Layer biased = even;
  biased.activation.kind = ActivationKind::swiglu_clamped;
  biased.gate_up_order = GateUpOrder::interleaved;
  biased.expert_bias = true;
  Layer gelu = ragged;
  gelu.activation.kind = ActivationKind::gelu_and_mul;
  gelu.expert_bias = true;
  Layer gelu_tanh = even;
  gelu_tanh.activation.kind = ActivationKind::gelu_tanh_and_mul;
  gelu_tanh.expert_bias = true;
  gelu_tanh.adds_w2_bias = false;
  // Stages that fit beside any tile of any group.
  const auto few = [](const Config& c) { return with(c, "num_stages", 3); };
  const auto fp8 = [](const Config& c) { return with(c, "PROMOTE", 1); };
  const auto reduced = [](const Config& c) { return with(c, "PROMOTE", 0); };
  return {
      {"block_ragged", "fp8_block", ragged, {{}, split(16, 2), whole(64), whole(96)}},
      {"block_even",
       "fp8_block",
       even,
       {{}, split(48, 2), whole(80), paired(80), token_rows(1), token_rows(2)}},
      {"block_many", "fp8_block", many, {{}, split(8, 2), token_rows(1)}},
      {"ptpc_ragged", "fp8_ptpc", ragged, {{}, fp8(split(32, 2)), reduced(token_rows(1))}},
      {"ptpc_on_input",
       "fp8_ptpc",
       scaled_first,
       {{}, fp8(whole(80)), reduced(whole(96)), fp8(token_rows(1))}},
      {"ptpc_even",
       "fp8_ptpc",
       scaled_even,
       {reduced(split(64, 1000)), fp8(paired(80)), fp8(paired(96)), reduced(paired(144)),
        fp8(token_rows(2)), reduced(token_rows(2))}},
      {"bf16_ragged",
       "bf16",
       ragged,
       {{}, split(24, 1), split(64, 1000), with(whole(192), "num_stages", 3)}},
      {"bf16_even", "bf16", even, {{}, whole(128), paired(144), token_rows(1), token_rows(2)}},
      {"bf16_on_input", "bf16", scaled_first, {{}, whole(96)}},
      {"block_fine", "fp8_block", fine, {{}, split(48, 2), whole(64)}},
      {"block_biased", "fp8_block", biased, {{}, split(16, 2), whole(80)}},
      {"block_gelu_tanh", "fp8_block", gelu_tanh, {{}, token_rows(1), token_rows(2)}},
      {"ptpc_gelu", "fp8_ptpc", gelu, {{}, fp8(split(32, 2)), reduced(token_rows(1))}},
      {"bf16_biased", "bf16", biased, {{}, whole(144), token_rows(2)}},
      {"tensor_ragged", "fp8_tensor", ragged, {{}, fp8(split(16, 2)), reduced(whole(96))}},
      {"tensor_on_input",
       "fp8_tensor",
       scaled_even,
       {{}, fp8(token_rows(1)), reduced(split(8, 2))}},
      {"static_ragged", "fp8_tensor_static", ragged, {{}, reduced(token_rows(1))}},
      {"mx_ragged", "mxfp8", ragged, {{}, split(16, 2), split(64, 1000), whole(48)}},
      {"mx_fine", "mxfp8_floor", fine, {{}, split(8, 2), whole(64)}},
      {"mx_biased", "mxfp8", biased, {{}, split(32, 2)}},
      {"mx_on_input", "mxfp8", scaled_first, {{}, whole(64)}},
      {"int8_ragged", "w8a8_int8", ragged, {{}, split(16, 2), whole(96), token_rows(1)}},
      {"int8_even",
       "w8a8_int8",
       scaled_even,
       {split(64, 1000), whole(144), paired(80), token_rows(2)}},
      {"int8_gelu", "w8a8_int8", gelu, {{}, whole(64)}},
      {"fp16_ragged", "fp16", in_fp16(ragged), {{}, split(24, 1), whole(144), token_rows(1)}},
      {"fp16_biased", "fp16", in_fp16(biased), {{}, paired(144), token_rows(2)}},
      {"fp16_block", "fp8_block", in_fp16(even), {{}, split(16, 2), token_rows(1)}},
      {"fp16_ptpc",
       "fp8_ptpc",
       in_fp16(scaled_even),
       {{}, fp8(paired(80)), reduced(token_rows(2))}},
      {"fp16_int8", "w8a8_int8", in_fp16(ragged), {{}, token_rows(1)}},
      {"fp16_mx", "mxfp8", in_fp16(ragged), {{}, split(32, 2)}},
      {"fp16_w4", "w4a16_g32_zp", in_fp16(ragged), {{}, few(split(48, 1)), few(whole(80))}},
      {"fp16_w8", "w8a16_g64_zp", in_fp16(ragged), {{}, few(split(48, 1)), few(whole(80))}},
      {"mxfp4", "mxfp4", ragged, {{}, few(split(24, 1000)), few(whole(96))}},
      {"mxfp4_biased", "mxfp4", biased, {{}, few(split(8, 2)), few(whole(64))}},
      {"fp16_mxfp4", "mxfp4", in_fp16(ragged), {{}, few(split(48, 1)), few(whole(80))}},
      {"w4", "w4a16_g128", ragged, {{}, few(split(24, 1000)), few(whole(96))}},
      {"w4_ordered", "w4a16_g32_zp_actorder", ragged, {{}, few(split(48, 1)), few(whole(80))}},
      {"w4_fine", "w4a16_g64_zp", fine, {{}, few(split(16, 1))}},
      {"w8", "w8a16_g64_zp", ragged, {{}, few(split(48, 1)), few(whole(80))}},
  };
}

// The same answer with and without a device: what is refused then is the device that is not here.
TEST(Refusals, EverySchemeIsServedInBothDtypesButForFnuz) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16}) {
    const Layer layer = {
        .experts = 8, .top_k = 2, .hidden_size = 512, .intermediate_size = 256, .dtype = dtype};
    for (const char* name :
         {"fp8_block", "fp8_block_frommx", "fp8_ptpc", "fp8_tensor", "fp8_tensor_static", "mxfp8",
          "mxfp8_floor", "mxfp4", "w4a16_g32_zp", "w8a16_g64_actorder", "w8a8_int8"}) {
      const auto refusal = cuda_backend().refuses({layer, make_scheme(name), 0});
      EXPECT_TRUE(!refusal || refusal->reason == RefusalReason::device_absent) << name;
    }
    for (const char* name : {"fp8_block_fnuz", "fp8_ptpc_fnuz224", "mxfp8_fnuz"}) {
      const auto refusal = cuda_backend().refuses({layer, make_scheme(name), 0});
      ASSERT_TRUE(refusal.has_value()) << name;
      EXPECT_EQ(refusal->reason, RefusalReason::scheme) << name;
      EXPECT_NE(refusal->sentence.find("240 has no code"), std::string::npos) << name;
    }
  }
}

}  // namespace

namespace on_device {

const Backend& backend() { return cuda_backend(); }
std::vector<LayerCase> layer_cases() { return every_kind_of_tile(); }

}  // namespace on_device
}  // namespace moegauge
