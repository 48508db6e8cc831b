// The key names are those of the configuration classes in Hugging Face transformers (and, for
// kimi_k2, of the checkpoint's own); what a class leaves unsaid its modelling code fixes, as noted
// at each reader.
#include "harness/suite/hf_config.h"

#include <algorithm>
#include <array>
#include <map>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

struct Architecture {
  std::string model_type;
  std::string experts, intermediate;  // key names
  bool nested = false;                // the layer is described in text_config
  void (*routing)(const JsonCursor& config, Model& model) = nullptr;
};

// Optional values are often written as null.
std::optional<JsonCursor> find_set(const JsonCursor& config, std::string_view key) {
  auto found = config.find(key);
  if (found && found->is_null()) return std::nullopt;
  return found;
}

bool flag(const JsonCursor& config, std::string_view key, bool otherwise) {
  const auto found = find_set(config, key);
  return found ? found->boolean() : otherwise;
}

std::int64_t count(const JsonCursor& config, std::string_view key, std::int64_t otherwise) {
  const auto found = find_set(config, key);
  return found ? found->integer(0, max_experts) : otherwise;
}

// Mixtral's block always renormalises the chosen probabilities.
void mixtral_routing(const JsonCursor&, Model& model) {
  model.routing_rule = "softmax";
  model.renormalize = true;
}

void qwen3_routing(const JsonCursor& config, Model& model) {
  model.routing_rule = "softmax";
  model.renormalize = config.at("norm_topk_prob").boolean();
}

// The router of Qwen3.5 always renormalises; one gated shared expert where its size is set.
void qwen3_5_routing(const JsonCursor& config, Model& model) {
  model.routing_rule = "softmax";
  model.renormalize = flag(config, "norm_topk_prob", true);
  const auto shared = find_set(config, "shared_expert_intermediate_size");
  model.shared_experts = shared && shared->integer(0, max_layer_size) > 0 ? 1 : 0;
}

void require_sigmoid(const JsonCursor& config) {
  static const std::array<std::string, 1> known = {"sigmoid"};
  if (const auto found = find_set(config, "scoring_func")) found->one_of(known, "scoring_func");
}

// DeepSeek-V3, Kimi-K2 and GLM-4.5: sigmoid scores, a learnt correction bias, groups.
void grouped_routing(const JsonCursor& config, Model& model) {
  require_sigmoid(config);
  static const std::array<std::string, 1> methods = {"noaux_tc"};
  if (const auto found = find_set(config, "topk_method")) found->one_of(methods, "topk_method");
  model.routing_rule = "grouped_sigmoid";
  model.correction_bias = true;
  model.groups = config.at("n_group").integer(1, max_experts);
  model.top_groups = config.at("topk_group").integer(1, max_experts);
  model.renormalize = config.at("norm_topk_prob").boolean();
  model.scaling_factor = config.at("routed_scaling_factor").number(0, 1e6);
  model.shared_experts = count(config, "n_shared_experts", 0);
}

// MiniMax-M2 chooses on biased sigmoid scores and always renormalises.
void minimax_routing(const JsonCursor& config, Model& model) {
  require_sigmoid(config);
  model.routing_rule = "grouped_sigmoid";
  model.correction_bias = flag(config, "use_routing_bias", true);
  model.renormalize = true;
  const auto shared = find_set(config, "shared_intermediate_size");
  model.shared_experts = shared && shared->integer(0, max_layer_size) > 0 ? 1 : 0;
}

// Llama-4: the sigmoid of the chosen logit multiplies the expert's input; one shared expert always.
void llama4_routing(const JsonCursor&, Model& model) {
  model.routing_rule = "sigmoid_top1";
  model.layer.router_weight_on_input = true;
  model.shared_experts = 1;
}

// gpt-oss: biases everywhere, gate and up rows interleaved, beta 1 in its code, alpha 1.702 unless
// swiglu_alpha says otherwise.
void gpt_oss_routing(const JsonCursor& config, Model& model) {
  model.routing_rule = "softmax_after_topk";
  model.renormalize = true;
  model.layer.expert_bias = true;
  model.layer.gate_up_order = GateUpOrder::interleaved;
  const auto alpha = find_set(config, "swiglu_alpha");
  model.layer.activation = {.kind = ActivationKind::swiglu_clamped,
                            .alpha = alpha ? alpha->number(0, 1e6) : 1.702,
                            .beta = 1.0,
                            .limit = config.at("swiglu_limit").number(0, 1e6)};
}

const std::vector<Architecture>& architectures() {
  constexpr bool flat = false, nested = true;
  static const std::vector<Architecture> all = {
      {"deepseek_v3", "n_routed_experts", "moe_intermediate_size", flat, grouped_routing},
      {"glm4_moe", "n_routed_experts", "moe_intermediate_size", flat, grouped_routing},
      {"gpt_oss", "num_local_experts", "intermediate_size", flat, gpt_oss_routing},
      {"kimi_k2", "n_routed_experts", "moe_intermediate_size", flat, grouped_routing},
      {"llama4", "num_local_experts", "intermediate_size", nested, llama4_routing},
      {"llama4_text", "num_local_experts", "intermediate_size", flat, llama4_routing},
      {"minimax_m2", "num_local_experts", "intermediate_size", flat, minimax_routing},
      {"mixtral", "num_local_experts", "intermediate_size", flat, mixtral_routing},
      {"qwen3_5_moe", "num_experts", "moe_intermediate_size", nested, qwen3_5_routing},
      {"qwen3_5_moe_text", "num_experts", "moe_intermediate_size", flat, qwen3_5_routing},
      {"qwen3_moe", "num_experts", "moe_intermediate_size", flat, qwen3_routing},
  };
  return all;
}

void read_activation(const JsonCursor& config, Model& model) {
  if (model.layer.activation.kind == ActivationKind::swiglu_clamped)
    return;  // set with the routing
  static const std::array<std::string, 3> acts = {"silu", "gelu", "gelu_pytorch_tanh"};
  if (const auto act = find_set(config, "hidden_act")) {
    model.layer.activation.kind = static_cast<ActivationKind>(act->one_of(acts, "hidden_act"));
  }
}

void read_dtype(const JsonCursor& top, const JsonCursor& config, Model& model) {
  static const std::array<std::string, 2> dtypes = {"bfloat16", "float16"};
  for (const auto& cursor : {config, top}) {
    for (const auto* key : {"dtype", "torch_dtype"}) {
      if (const auto dtype = find_set(cursor, key)) {
        const auto named = std::ranges::find(dtypes, dtype->string());
        // float32 is no slip of float16.
        if (named == dtypes.end()) {
          dtype->fail("activations in " + in_quotes(dtype->string()) + " are not served",
                      joined(dtypes) + " are");
        }
        model.layer.dtype = static_cast<Dtype>(named - dtypes.begin());
        return;
      }
    }
  }
}

// How integers with a scale per group are stored.
struct IntegerGroups {
  std::int64_t bits = 4, group = -1;  // columns; below 1: one group
  bool zero_points = false, act_order = false;
};

std::string integer_scheme(const IntegerGroups& groups) {
  std::string name = "w" + std::to_string(groups.bits) + "a16_";
  name += groups.group > 0 ? "g" + std::to_string(groups.group) : "channel";
  if (groups.zero_points) name += "_zp";
  if (groups.act_order && groups.group > 0) name += "_actorder";
  return make_scheme(name) != nullptr ? name : "";
}

// Scales per token are always those of the data, one per tensor only where it says so.
bool is_dynamic(const JsonCursor& group, std::string_view strategy) {
  const auto activations = find_set(group, "input_activations");
  if (!activations || activations->at("strategy").string() != strategy) return false;
  return strategy == "token" || flag(*activations, "dynamic", false);
}

std::string compressed_integers(const JsonCursor& group, const JsonCursor& weights) {
  const auto bits = weights.at("num_bits").integer(1, 16);
  const std::string strategy = weights.at("strategy").string();
  if (find_set(group, "input_activations")) {
    const bool per_token = strategy == "channel" && is_dynamic(group, "token");
    return bits == 8 && per_token && flag(weights, "symmetric", true) ? "w8a8_int8" : "";
  }
  const auto size = find_set(weights, "group_size");
  // true is an older spelling of "group"; the other orders are undone before files are written.
  const auto order = find_set(weights, "actorder");
  const bool act_order =
      order && (order->is_string() ? order->string() == "group" : order->boolean());
  return integer_scheme(
      {.bits = bits,
       .group = size && strategy == "group" ? size->integer(-1, max_layer_size) : -1,
       .zero_points = !flag(weights, "symmetric", true),
       .act_order = act_order});
}

bool is_block_of_128(const JsonCursor& sides) {
  const auto items = sides.items();
  return items.size() == 2 && std::ranges::all_of(items, [](const JsonCursor& side) {
           return side.integer(1, max_layer_size) == 128;
         });
}

std::string compressed_floats(const JsonCursor& group, const JsonCursor& weights) {
  if (weights.at("num_bits").integer(1, 16) != 8) return "";
  const std::string strategy = weights.at("strategy").string();
  if (strategy == "channel") return is_dynamic(group, "token") ? "fp8_ptpc" : "";
  const auto activations = find_set(group, "input_activations");
  if (!activations) return "";  // weights alone
  if (strategy == "tensor") {
    if (activations->at("strategy").string() != "tensor") return "";
    return is_dynamic(group, "tensor") ? "fp8_tensor" : "fp8_tensor_static";
  }
  const auto block = find_set(weights, "block_structure");
  return strategy == "block" && block && is_block_of_128(*block) ? "fp8_block" : "";
}

// compressed-tensors: the first group of layers speaks for the experts.
std::string compressed_scheme(const JsonCursor& quantization) {
  const auto groups = quantization.at("config_groups").members();
  if (groups.empty()) return "";
  const auto& group = groups.front().second;
  const auto weights = group.at("weights");
  const std::string type = weights.at("type").string();
  if (type == "int") return compressed_integers(group, weights);
  return type == "float" ? compressed_floats(group, weights) : "";
}

std::string fp8_scheme(const JsonCursor& quantization) {
  const auto block = find_set(quantization, "weight_block_size");
  if (block) return is_block_of_128(*block) ? "fp8_block" : "";
  const auto activations = find_set(quantization, "activation_scheme");
  return activations && activations->string() == "static" ? "fp8_tensor_static" : "fp8_tensor";
}

std::string gptq_scheme(const JsonCursor& quantization) {
  return integer_scheme({.bits = quantization.at("bits").integer(1, 16),
                         .group = quantization.at("group_size").integer(-1, max_layer_size),
                         .zero_points = !flag(quantization, "sym", true),
                         .act_order = flag(quantization, "desc_act", false)});
}

std::string awq_scheme(const JsonCursor& quantization) {
  const auto bits = quantization.at("bits").integer(1, 16);
  if (bits != 4) return "";
  return integer_scheme({.bits = bits,
                         .group = quantization.at("group_size").integer(-1, max_layer_size),
                         .zero_points = flag(quantization, "zero_point", true)});
}

std::string mxfp4_scheme(const JsonCursor&) { return "mxfp4"; }

// The scheme of the checkpoint, where quantization_config says it in a way that has a name here;
// otherwise empty.
std::string checkpoint_scheme(const JsonCursor& quantization) {
  using Reader = std::string (*)(const JsonCursor&);
  static const std::map<std::string, Reader> readers = {{"awq", awq_scheme},
                                                        {"compressed-tensors", compressed_scheme},
                                                        {"fp8", fp8_scheme},
                                                        {"gptq", gptq_scheme},
                                                        {"mxfp4", mxfp4_scheme}};
  const auto found = readers.find(quantization.at("quant_method").string());
  return found == readers.end() ? "" : found->second(quantization);
}

}  // namespace

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names;
  for (const auto& architecture : architectures()) names.push_back(architecture.model_type);
  return names;
}

Model read_hf_config(const JsonDocument& document) {
  const JsonCursor top(document);
  const auto names = hf_model_types();
  const auto type = top.at("model_type");
  const auto& found = architectures()[type.one_of(names, "model_type")];
  const JsonCursor config = found.nested ? top.at("text_config") : top;

  Model model;
  model.name = document.where();
  if (const auto id = find_set(top, "_name_or_path")) model.hf_id = id->string();
  model.layer.experts = config.at(found.experts).integer(1, max_experts);
  model.layer.top_k = config.at("num_experts_per_tok").integer(1, max_experts);
  model.layer.hidden_size = config.at("hidden_size").integer(1, max_layer_size);
  model.layer.intermediate_size = config.at(found.intermediate).integer(1, max_layer_size);
  found.routing(config, model);
  read_activation(config, model);
  read_dtype(top, config, model);
  auto quantization = find_set(top, "quantization_config");
  if (!quantization) quantization = find_set(config, "quantization_config");
  const std::string plain = model.layer.dtype == Dtype::bf16 ? "bf16" : "fp16";
  const std::string scheme = quantization ? checkpoint_scheme(*quantization) : plain;
  if (!scheme.empty()) model.served_as = {scheme};
  model.source = "config.json of a " + found.model_type + " checkpoint";
  check_model(model, document.where());
  return model;
}

}  // namespace moegauge
