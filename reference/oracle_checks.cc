// What compute_truth refuses, and why.
#include "reference/oracle_checks.h"

#include <algorithm>
#include <cmath>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

std::string number(std::int64_t n) { return std::to_string(n); }

std::optional<std::string> illegal_sizes(const Layer& layer) {
  if (layer.experts < 1 || layer.hidden_size < 1 || layer.intermediate_size < 1) {
    return "experts " + number(layer.experts) + ", hidden size " + number(layer.hidden_size) +
           ", intermediate size " + number(layer.intermediate_size) + ": each must be at least 1";
  }
  // Ids may repeat within a row, so top_k may exceed the number of experts.
  if (layer.top_k < 1) return "top_k " + number(layer.top_k) + " must be at least 1";
  if (layer.expert_map.empty()) return std::nullopt;
  if (static_cast<std::int64_t>(layer.expert_map.size()) != layer.experts) {
    return "the expert map has " + number(static_cast<std::int64_t>(layer.expert_map.size())) +
           " entries for " + number(layer.experts) + " experts";
  }
  const std::int64_t local = layer.local_experts();
  std::vector<bool> seen(static_cast<std::size_t>(local));
  for (const std::int32_t id : layer.expert_map) {
    if (id < 0) continue;
    if (id >= local || seen[static_cast<std::size_t>(id)]) {
      return "the expert map must name each local expert 0 to " + number(local - 1) +
             " once, and names " + number(id) + (id >= local ? "" : " twice");
    }
    seen[static_cast<std::size_t>(id)] = true;
  }
  return std::nullopt;
}

void expect_count(const std::string& what, std::size_t is, std::int64_t should) {
  if (static_cast<std::int64_t>(is) == should) return;
  throw InputError(what, "it has " + std::to_string(is) + " elements",
                   "the layer and its tokens need " + number(should));
}

}  // namespace

std::optional<std::string> illegal(const Layer& layer, const Scheme& scheme) {
  if (auto sizes = illegal_sizes(layer)) return sizes;
  if (layer.router_weight_on_input && layer.top_k != 1) {
    return "router weight on input needs top_k 1, and top_k is " + number(layer.top_k) +
           ": with more experts per token their weights do not commute with the activation";
  }
  if (layer.router_weight_on_input && layer.expert_bias) {
    return "router weight on input needs a w13 without bias: the weight would multiply it too";
  }
  const auto only = scheme.traits().only;
  if (only && *only != layer.dtype) {
    return "scheme " + scheme.name() + " holds " + (*only == Dtype::bf16 ? "bf16" : "fp16") +
           " and the layer's activations are " + (layer.dtype == Dtype::bf16 ? "bf16" : "fp16");
  }
  return std::nullopt;
}

void check_truth_inputs(const Layer& layer, const Scheme& scheme, const ExpertSource& experts,
                        const LayerInputs& inputs) {
  if (const auto reason = illegal(layer, scheme)) throw InputError("layer", *reason, "");
  expect_count("x", inputs.x.size(), inputs.tokens * layer.hidden_size);
  expect_count("topk_ids", inputs.topk_ids.size(), inputs.tokens * layer.top_k);
  expect_count("topk_weights", inputs.topk_weights.size(), inputs.tokens * layer.top_k);
  for (const std::int32_t id : inputs.topk_ids) {
    if (id >= -1 && id < layer.experts) continue;
    throw InputError("topk_ids", "there is no expert " + number(id),
                     "ids are 0 to " + number(layer.experts - 1) + ", or -1 for a dropped pair");
  }
  if (!scheme.traits().activation.static_scale) return;
  for (const Role role : {Role::w13, Role::w2}) {
    const float scale = experts.activation_scale(role);
    if (std::isfinite(scale) && scale > 0) continue;
    throw InputError("activation scale of " + std::string(role == Role::w13 ? "w13" : "w2"),
                     std::to_string(scale) + " was given", scheme.name() + " needs a positive one");
  }
}

void check_bias(const Layer& layer, Role role, std::int64_t expert, std::size_t size) {
  const std::string name = role == Role::w13 ? "w13_bias" : "w2_bias";
  expect_count(name + " of expert " + number(expert), size, weight_shape(layer, role).rows);
}

}  // namespace moegauge
