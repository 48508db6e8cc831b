#include "harness/suite/hf_config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

Model read(const std::string& text) {
  return read_hf_config(JsonDocument::parse(text, "config.json"));
}

std::string refusal(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// Whether a checkpoint's configuration describes the layer of our own model file.
void expect_same(const Model& model, const std::string& name) {
  const Model ours = load_model(name, ".");
  EXPECT_EQ(model.layer.experts, ours.layer.experts);
  EXPECT_EQ(model.layer.top_k, ours.layer.top_k);
  EXPECT_EQ(model.layer.hidden_size, ours.layer.hidden_size);
  EXPECT_EQ(model.layer.intermediate_size, ours.layer.intermediate_size);
  EXPECT_EQ(model.layer.activation.kind, ours.layer.activation.kind);
  EXPECT_EQ(model.layer.activation.limit, ours.layer.activation.limit);
  EXPECT_EQ(model.layer.gate_up_order, ours.layer.gate_up_order);
  EXPECT_EQ(model.layer.router_weight_on_input, ours.layer.router_weight_on_input);
  EXPECT_EQ(model.layer.expert_bias, ours.layer.expert_bias);
  EXPECT_EQ(model.routing_rule, ours.routing_rule);
  EXPECT_EQ(model.renormalize, ours.renormalize);
  EXPECT_EQ(model.groups, ours.groups);
  EXPECT_EQ(model.top_groups, ours.top_groups);
  EXPECT_EQ(model.correction_bias, ours.correction_bias);
  EXPECT_EQ(model.scaling_factor, ours.scaling_factor);
  EXPECT_EQ(model.shared_experts, ours.shared_experts);
}

constexpr const char* qwen3 = R"({
"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu",
"hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
"num_experts_per_tok": 8, "norm_topk_prob": true, "rope_scaling": null, "torch_dtype": "bfloat16",
"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}})";

TEST(HfConfig, ReadsEachArchitecturesOwnKeys) {
  const Model model = read(qwen3);
  expect_same(model, "qwen3-30b-a3b");
  EXPECT_EQ(model.served_as, (std::vector<std::string>{"fp8_block"}));

  expect_same(
      read(R"({"model_type": "qwen3_5_moe", "text_config": {"model_type": "qwen3_5_moe_text",
    "hidden_size": 2048, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    "num_experts": 256, "num_experts_per_tok": 8, "hidden_act": "silu", "dtype": "bfloat16"}})"),
      "qwen3.5-35b-a3b");
  expect_same(read(R"({"model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 14336, "num_local_experts": 8, "num_experts_per_tok": 2, "torch_dtype": "bfloat16"})"),
              "mixtral-8x7b");
  const std::string deepseek =
      R"("hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "n_shared_experts": 1, "norm_topk_prob": true, "num_experts_per_tok": 8, "scoring_func": "sigmoid",
    "topk_method": "noaux_tc", "hidden_act": "silu", "torch_dtype": "bfloat16"})";
  expect_same(
      read(R"({"model_type": "deepseek_v3", "n_routed_experts": 256, "n_group": 8, "topk_group": 4,
    "routed_scaling_factor": 2.5, )" +
           deepseek),
      "deepseek-v3");
  expect_same(
      read(R"({"model_type": "kimi_k2", "n_routed_experts": 384, "n_group": 1, "topk_group": 1,
    "routed_scaling_factor": 2.827, )" +
           deepseek),
      "kimi-k2");
  expect_same(
      read(
          R"({"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size": 5120,
    "intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_local_experts": 16, "num_experts_per_tok": 1,
    "hidden_act": "silu", "torch_dtype": "bfloat16"}, "vision_config": {"hidden_act": "gelu"}})"),
      "llama-4-scout");
  expect_same(
      read(
          R"({"model_type": "gpt_oss", "hidden_act": "silu", "hidden_size": 2880, "intermediate_size": 2880,
    "num_local_experts": 32, "num_experts_per_tok": 4, "experts_per_token": 4, "swiglu_limit": 7.0,
    "quantization_config": {"quant_method": "mxfp4"}})"),
      "gpt-oss-20b");
  expect_same(read(R"({"model_type": "glm4_moe", "hidden_act": "silu", "hidden_size": 5120,
    "moe_intermediate_size": 1536, "n_routed_experts": 160, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "torch_dtype": "bfloat16"})"),
              "glm-4.5");
  expect_same(read(R"({"model_type": "minimax_m2", "hidden_act": "silu", "hidden_size": 3072,
    "intermediate_size": 1536, "num_local_experts": 256, "num_experts_per_tok": 8, "scoring_func": "sigmoid",
    "use_routing_bias": true, "shared_intermediate_size": 0})"),
              "minimax-m2");
}

std::string scheme_of(const std::string& quantization) {
  const auto served =
      read(R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_local_experts": 8, "num_experts_per_tok": 2, "dtype": "float16")" +
           quantization + "}")
          .served_as;
  return served.empty() ? "none" : served.front();
}

TEST(HfConfig, NamesTheCheckpointsScheme) {
  EXPECT_EQ(scheme_of(""), "fp16");
  EXPECT_EQ(scheme_of(R"(, "quantization_config": null)"), "fp16");
  EXPECT_EQ(scheme_of(R"(, "quantization_config": {"quant_method": "fp8"})"), "fp8_tensor");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 128]})"),
      "none");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128})"),
      "w4a16_g128");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": -1})"),
      "w8a16_channel");
  EXPECT_EQ(scheme_of(R"(, "quantization_config": {"quant_method": "gptq", "bits": 4,
    "group_size": 64, "sym": false, "desc_act": true})"),
            "w4a16_g64_zp_actorder");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 256})"),
      "none")
      << "no scheme has groups of 256";
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128})"),
      "w4a16_g128_zp");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "fp8", "activation_scheme": "static"})"),
      "fp8_tensor_static");
  EXPECT_EQ(
      scheme_of(R"(, "quantization_config": {"quant_method": "awq", "bits": 3, "group_size": 64})"),
      "none");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
    {"weights": {"type": "int", "num_bits": 4, "strategy": "group", "group_size": 32}, "input_activations": null}}})"),
      "w4a16_g32");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
    {"weights": {"type": "float", "num_bits": 8, "strategy": "channel"},
     "input_activations": {"type": "float", "num_bits": 8, "strategy": "token"}}}})"),
      "fp8_ptpc");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
    {"weights": {"type": "int", "num_bits": 8, "strategy": "channel"},
     "input_activations": {"type": "int", "num_bits": 8, "strategy": "token"}}}})"),
      "w8a8_int8");
  EXPECT_EQ(
      scheme_of(
          R"(, "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
    {"weights": {"type": "int", "num_bits": 4, "strategy": "group", "group_size": 128,
     "symmetric": false, "actorder": "group"}, "input_activations": null}}})"),
      "w4a16_g128_zp_actorder");
  // One scale per tensor with activations per token, or with none, is no scheme of ours.
  for (const char* activations :
       {R"({"type": "float", "num_bits": 8, "strategy": "token", "dynamic": true})", "null"}) {
    EXPECT_EQ(
        scheme_of(
            std::string(
                R"(, "quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0":
    {"weights": {"type": "float", "num_bits": 8, "strategy": "tensor"}, "input_activations": )") +
            activations + "}}}"),
        "none");
  }
  EXPECT_EQ(scheme_of(R"(, "quantization_config": {"quant_method": "bitsandbytes"})"), "none");
}

TEST(HfConfig, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(R"({"model_type": "llama"})"),
            "config.json:1: /model_type: unknown model_type \"llama\"; did you mean \"llama4\"?");
  EXPECT_EQ(refusal(R"({"model_type": "gemma3"})"),
            "config.json:1: /model_type: unknown model_type \"gemma3\"; known: deepseek_v3, "
            "glm4_moe, gpt_oss, kimi_k2, "
            "llama4, llama4_text, minimax_m2, mixtral, qwen3_5_moe, qwen3_5_moe_text, qwen3_moe");
  EXPECT_EQ(refusal("{}"), "config.json:1: the key \"model_type\" is missing; add it");
  EXPECT_EQ(refusal(R"({"model_type": "qwen3_5_moe", "num_experts": 256})"),
            "config.json:1: the key \"text_config\" is missing; add it");
  std::string text = qwen3;
  text.replace(text.find("num_experts_per_tok"), 19, "num_experts_per_tik");
  EXPECT_EQ(refusal(text), "config.json:1: the key \"num_experts_per_tok\" is missing; add it");
  text = qwen3;
  text.replace(text.find("\"silu\""), 6, "\"relu\"");
  EXPECT_EQ(refusal(text),
            "config.json:2: /hidden_act: unknown hidden_act \"relu\"; did you mean \"gelu\"?");
  text = qwen3;
  text.replace(text.find("bfloat16"), 8, "float64");
  EXPECT_EQ(refusal(text),
            "config.json:4: /torch_dtype: activations in \"float64\" are not served; bfloat16, "
            "float16 are");
}

TEST(HfConfig, IsFoundByFileOrFolder) {
  const fs::path folder = fs::temp_directory_path() / ("moegauge_hf_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << qwen3;
  EXPECT_EQ(load_model((folder / "config.json").string(), ".").layer.experts, 128);
  EXPECT_EQ(load_model(folder.string() + "/", ".").layer.experts, 128);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace moegauge
