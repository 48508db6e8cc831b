#include "harness/workload/replay_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"
#include "reference/routing.h"

namespace moegauge {
namespace {

using Shape = std::vector<std::int64_t>;

// Where a size is read from: axis `axis` of a tensor of `rank` axes.
struct SizeSource {
  const char* tensor;
  std::size_t rank, axis;
};

// The size that the tensors present agree on.
std::optional<std::int64_t> size_of(const ReplayFile& file, std::span<const SizeSource> sources) {
  std::optional<std::int64_t> size;
  const TensorInfo* from = nullptr;
  for (const SizeSource& source : sources) {
    const TensorInfo* tensor = file.find(source.tensor);
    if (tensor == nullptr) continue;
    if (tensor->shape.size() != source.rank) {
      file.fail(tensor->name, "is " + describe(*tensor),
                "it has " + std::to_string(source.rank) + " axes");
    }
    const std::int64_t found = tensor->shape[source.axis];
    if (size && *size != found) {
      file.fail(tensor->name,
                "is " + describe(*tensor) + " beside " + from->name + ", " + describe(*from),
                std::to_string(found) + " and " + std::to_string(*size) + " must agree");
    }
    size = found;
    from = tensor;
  }
  return size;
}

std::int64_t required_size(const ReplayFile& file, const char* what,
                           std::span<const SizeSource> sources) {
  const auto size = size_of(file, sources);
  if (size && *size > 0) return *size;
  std::string names;
  for (const SizeSource& source : sources)
    names += (names.empty() ? "" : " or ") + std::string(source.tensor);
  throw InputError(file.where(), "no tensor says what " + std::string(what) + " is",
                   "put " + names + " into the file, or name a model");
}

Dtype dtype_of(const ReplayFile& file, const Scheme& scheme) {
  if (const auto only = scheme.traits().only) return *only;
  const TensorInfo* x = file.find("x");
  return x != nullptr && x->dtype == TensorDtype::f16 ? Dtype::fp16 : Dtype::bf16;
}

template <typename T>
std::string at_index(const TensorInfo& tensor, std::size_t flat, T value) {
  const auto cols = static_cast<std::size_t>(std::max<std::int64_t>(tensor.shape.back(), 1));
  std::string index = std::to_string(flat % cols);
  if (tensor.shape.size() > 1) index = std::to_string(flat / cols) + ", " + index;
  return "holds " + std::to_string(value) + " at [" + index + "]";
}

void check_range(const ReplayFile& file, const char* name, std::int32_t low, std::int64_t high) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) return;
  const auto values = file.read<std::int32_t>(*tensor);
  const auto wrong =
      std::ranges::find_if(values, [&](std::int32_t value) { return value < low || value > high; });
  if (wrong == values.end()) return;
  file.fail(name, at_index(*tensor, static_cast<std::size_t>(wrong - values.begin()), *wrong),
            std::to_string(low) + " to " + std::to_string(high));
}

void check_form(const ReplayFile& file, const char* name, const TensorForm& form) {
  if (const TensorInfo* tensor = file.find(name)) file.require(*tensor, {&form, 1});
}

// Scales of which the larger is taken.
void check_scales_compare(const ReplayFile& file, const TensorInfo& tensor) {
  const auto scales = file.read<float>(tensor);
  const auto wrong = std::ranges::find_if(
      scales, [](float scale) { return !(scale >= 0 && std::isfinite(scale)); });
  if (wrong == scales.end()) return;
  file.fail(tensor.name, at_index(tensor, static_cast<std::size_t>(wrong - scales.begin()), *wrong),
            "finite scales that are not negative");
}

void check_weight(const ReplayFile& file, const Problem& problem, Role role) {
  const MatrixShape shape = weight_shape(problem.layer, role);
  const std::int64_t experts = problem.layer.local_experts();
  const auto parts = canonical_parts(*problem.scheme, shape, experts);
  const TensorInfo* values = file.find(parts.front().name);
  const TensorForm originals = original_form(shape, experts);
  bool quantized = true;
  if (values != nullptr) {
    const std::array<TensorForm, 2> forms = {parts.front().form, originals};
    quantized = file.require(*values, forms) == 0 &&
                problem.scheme->traits().weight.element != Element::activation_dtype;
  }
  for (const std::string& name : part_names(role)) {
    const TensorInfo* tensor = file.find(name);
    if (tensor == nullptr || tensor == values) continue;
    const auto part = std::ranges::find(parts, name, &CanonicalPart::name);
    if (part == parts.end()) {
      file.fail(name, "has no place in the scheme " + problem.scheme->name(), "leave it out");
    }
    if (!quantized) {
      file.fail(
          name,
          "stands beside " + parts.front().name + " before quantisation, " + describe(*values),
          "leave it out, or give " + describe(parts.front().form));
    }
    std::vector<TensorForm> forms = {part->form};
    if (part->bytes == &Matrix::scales) {
      if (const auto split = split_scale_form(*problem.scheme, shape, experts)) {
        forms.push_back(*split);
      }
    }
    if (file.require(*tensor, forms) == 1) check_scales_compare(file, *tensor);
    if (part->bytes == &Matrix::group_index) {
      const std::int64_t groups = parts[1].form.shape.back();
      check_range(file, name.c_str(), 0, groups - 1);
    }
  }
}

void check_static_scale(const ReplayFile& file, const Problem& problem, const char* name) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) return;
  if (!problem.scheme->traits().activation.static_scale) {
    file.fail(name, "has no place in the scheme " + problem.scheme->name(),
              "its activations have no calibrated scale");
  }
  check_form(file, name, {{TensorDtype::f32}, {1}, true});
  const float scale = file.read<float>(*tensor).front();
  if (!(scale > 0 && std::isfinite(scale))) {
    file.fail(name, "is " + std::to_string(scale), "a positive number");
  }
}

void check_rows(const ReplayFile& file, const Problem& problem, std::int64_t fused) {
  const Layer& layer = problem.layer;
  const std::int64_t routed = layer.experts - fused;
  check_form(file, "x", {{tensor_dtype_of(layer.dtype)}, {problem.tokens, layer.hidden_size}});
  const Shape pairs = {problem.tokens, layer.top_k};
  check_form(file, "topk_ids", {{TensorDtype::i32}, pairs});
  check_form(file, "topk_weights", {{TensorDtype::f32}, pairs});
  check_form(file, "router_logits",
             {{TensorDtype::f32, TensorDtype::bf16, TensorDtype::f16}, {problem.tokens, routed}});
  check_form(file, "correction_bias", {{TensorDtype::f32}, {routed}});
  check_range(file, "topk_ids", -1, layer.experts - 1);
  if (file.find("correction_bias") != nullptr && file.find("router_logits") == nullptr) {
    file.fail("correction_bias", "is there without router_logits", "only routing would read it");
  }
}

// A file is of one rank: with act_order the scales of its w2 tell how many groups the whole has.
void take_whole_size(const ReplayFile& file, const OperandTraits& weight, Layer& layer) {
  const TensorInfo* scales = file.find("w2_scale");
  if (!weight.group_index || layer.whole_intermediate_size != 0 || scales == nullptr) return;
  if (scales->shape.size() != 3) return;  // check_tensors says what is right
  const std::int64_t groups = scales->shape[2];
  if (groups <= scales_of_row(weight, weight_shape(layer, Role::w2))) return;
  if (groups > max_layer_size / weight.unit.cols) {
    file.fail(scales->name, "is " + describe(*scales), "fewer groups");
  }
  layer.whole_intermediate_size = groups * weight.unit.cols;
}

}  // namespace

Model replayed_model(const ReplayFile& file, const std::string& fields, const Scheme& scheme) {
  // Packed values have fewer columns than the matrix; their rows are whole.
  static constexpr SizeSource hidden[] = {{"x", 2, 1}, {"w2", 3, 1}};
  static constexpr SizeSource rows[] = {{"w13", 3, 1}};
  static constexpr SizeSource global_experts[] = {
      {"expert_map", 1, 0}, {"router_logits", 2, 1}, {"correction_bias", 1, 0}};
  static constexpr SizeSource local_experts[] = {{"w13", 3, 0}, {"w2", 3, 0}};
  static constexpr SizeSource chosen[] = {{"topk_ids", 2, 1}, {"topk_weights", 2, 1}};
  Model model;
  model.name = file.where();
  model.layer.dtype = dtype_of(file, scheme);
  model.layer.hidden_size = required_size(file, "the hidden size", hidden);
  const std::int64_t gate_up = required_size(file, "the intermediate size", rows);
  if (gate_up % 2 != 0) {
    file.fail("w13", "is " + describe(*file.find("w13")), "an even number of rows, gate and up");
  }
  model.layer.intermediate_size = gate_up / 2;
  const auto experts = size_of(file, global_experts);
  model.layer.experts =
      experts ? *experts : required_size(file, "the number of experts", local_experts);
  if (const auto top_k = size_of(file, chosen)) model.layer.top_k = *top_k;
  read_layer_fields(file.metadata("layer"), file.where() + ": metadata key layer", model);
  read_layer_fields(fields, "the case", model);
  if (model.layer.top_k == 0) {
    throw InputError(file.where(), "no tensor says what top_k is",
                     "put topk_ids or topk_weights into the file, or top_k into the case");
  }
  check_model(model, file.where());
  return model;
}

void take_from_file(const ReplayFile& file, const Scheme& scheme, Layer& layer) {
  take_whole_size(file, scheme.traits().weight, layer);
  if (file.find("w13_bias") != nullptr || file.find("w2_bias") != nullptr) layer.expert_bias = true;
  if (file.find("expert_map") != nullptr) layer.expert_map = given_expert_map(file, layer.experts);
}

std::vector<std::int32_t> given_expert_map(const ReplayFile& file, std::int64_t experts) {
  const TensorInfo* map = file.find("expert_map");
  if (map == nullptr) return {};
  const TensorForm form = {{TensorDtype::i32}, {experts}};
  file.require(*map, {&form, 1});
  auto ids = file.read<std::int32_t>(*map);
  std::vector<std::int32_t> local;
  for (const std::int32_t id : ids) {
    if (id != -1) local.push_back(id);
  }
  std::ranges::sort(local);
  for (std::size_t i = 0; i < local.size(); ++i) {
    if (local[i] == static_cast<std::int32_t>(i)) continue;
    file.fail("expert_map", "does not name local expert " + std::to_string(i) + " once",
              "-1, or each of 0 to one less than the number of local experts once");
  }
  if (local.empty()) file.fail("expert_map", "holds no local expert", "at least one is not -1");
  return ids;
}

void check_routing(const ReplayFile& file, const Model& model) {
  const bool logits = file.find("router_logits") != nullptr;
  const bool bias = file.find("correction_bias") != nullptr;
  const auto rule = routing_rule_from(model.routing_rule);
  if ((logits || bias) && !rule) {
    file.fail(logits ? "router_logits" : "correction_bias", "is there, and no routing rule",
              R"(put "routing_rule": {"rule": ...} into the case, as in model files)");
  }
  if (bias && rule != RoutingRule::grouped_sigmoid) {
    file.fail("correction_bias", "is there and the routing rule is " + model.routing_rule,
              "only grouped_sigmoid reads it");
  }
}

void check_tensors(const ReplayFile& file, const Problem& problem, std::int64_t fused) {
  const Layer& layer = problem.layer;
  check_rows(file, problem, fused);
  for (const Role role : {Role::w13, Role::w2}) check_weight(file, problem, role);
  const std::int64_t local = layer.local_experts();
  check_form(file, "w13_bias", {{TensorDtype::f32}, {local, 2 * layer.intermediate_size}});
  check_form(file, "w2_bias", {{TensorDtype::f32}, {local, layer.hidden_size}});
  check_static_scale(file, problem, "x_scale");
  check_static_scale(file, problem, "h_scale");
}

}  // namespace moegauge
