// Model files, moegauge.model/1, and the part of a model that one rank serves.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "harness/suite/hf_config.h"
#include "harness/suite/suite.h"
#include "reference/base/input_error.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

const std::array<std::string, 2> dtype_words = {"bf16", "fp16"};
const std::array<std::string, 4> activation_words = {"silu_and_mul", "gelu_and_mul",
                                                     "gelu_tanh_and_mul", "swiglu_clamped"};

namespace {

namespace fs = std::filesystem;

const std::array<std::string, 2> order_names = {"concatenated", "interleaved"};
const std::array<std::string, 4> rule_names = {"softmax", "softmax_after_topk", "grouped_sigmoid",
                                               "sigmoid_top1"};

// {"kind": ...}, or the kind alone where it has no parameters.
Activation read_activation(const JsonCursor& cursor) {
  if (cursor.is_string()) {
    Activation activation;
    activation.kind = static_cast<ActivationKind>(cursor.one_of(activation_words, "activation"));
    if (activation.kind == ActivationKind::swiglu_clamped) {
      cursor.fail("swiglu_clamped without its parameters",
                  R"(write {"kind": "swiglu_clamped", "alpha": .., "beta": .., "limit": ..})");
    }
    return activation;
  }
  cursor.only_keys({"kind", "alpha", "beta", "limit"});
  Activation activation;
  const auto kind = cursor.at("kind");
  activation.kind = static_cast<ActivationKind>(kind.one_of(activation_words, "activation"));
  const bool clamped = activation.kind == ActivationKind::swiglu_clamped;
  for (const auto& [key, value] :
       {std::pair{"alpha", &activation.alpha}, std::pair{"beta", &activation.beta},
        std::pair{"limit", &activation.limit}}) {
    if (clamped) {
      *value = cursor.at(key).number(0, 1e6);
    } else if (const auto found = cursor.find(key)) {
      found->fail("only swiglu_clamped has parameters", "remove the key");
    }
  }
  return activation;
}

void read_routing(const JsonCursor& cursor, Model& model) {
  cursor.only_keys(
      {"rule", "renormalize", "groups", "top_groups", "correction_bias", "scaling_factor"});
  model.routing_rule = rule_names[cursor.at("rule").one_of(rule_names, "routing rule")];
  if (const auto v = cursor.find("renormalize")) model.renormalize = v->boolean();
  if (const auto v = cursor.find("groups")) model.groups = v->integer(1, max_experts);
  if (const auto v = cursor.find("top_groups")) model.top_groups = v->integer(1, max_experts);
  if (const auto v = cursor.find("correction_bias")) model.correction_bias = v->boolean();
  if (const auto v = cursor.find("scaling_factor")) model.scaling_factor = v->number(0, 1e6);
  if (model.routing_rule == "softmax_after_topk") model.renormalize = true;
}

Model read_model(const JsonDocument& document) {
  const JsonCursor top(document);
  top.only_keys({"schema", "name", "hf_id", "experts", "top_k", "hidden_size",
                 "moe_intermediate_size", "dtype", "activation", "gate_up_order",
                 "router_weight_on_input", "expert_bias", "routing", "shared_experts", "served_as",
                 "source"});
  const std::array<std::string, 1> schema = {"moegauge.model/1"};
  top.at("schema").one_of(schema, "schema");
  Model model;
  model.name = top.at("name").text();
  if (const auto v = top.find("hf_id")) model.hf_id = v->text();
  model.layer.experts = top.at("experts").integer(1, max_experts);
  model.layer.top_k = top.at("top_k").integer(1, max_experts);
  model.layer.hidden_size = top.at("hidden_size").integer(1, max_layer_size);
  model.layer.intermediate_size = top.at("moe_intermediate_size").integer(1, max_layer_size);
  if (const auto v = top.find("dtype"))
    model.layer.dtype = static_cast<Dtype>(v->one_of(dtype_words, "dtype"));
  model.layer.activation = read_activation(top.at("activation"));
  if (const auto v = top.find("gate_up_order")) {
    model.layer.gate_up_order = static_cast<GateUpOrder>(v->one_of(order_names, "gate_up_order"));
  }
  if (const auto v = top.find("router_weight_on_input"))
    model.layer.router_weight_on_input = v->boolean();
  if (const auto v = top.find("expert_bias")) model.layer.expert_bias = v->boolean();
  read_routing(top.at("routing"), model);
  if (const auto v = top.find("shared_experts")) model.shared_experts = v->integer(0, max_experts);
  for (const auto& item : top.at("served_as").items()) {
    model.served_as.push_back(item.text());
    if (make_scheme(model.served_as.back()) != nullptr) continue;
    const UnknownName unknown = unknown_scheme(model.served_as.back());
    item.fail(unknown.wrong, unknown.right);
  }
  if (const auto v = top.find("source")) model.source = v->text();
  check_model(model, document.where());
  return model;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

Model load_by_path(const fs::path& file) {
  const auto document = JsonDocument::read(file);
  const JsonCursor top(document);
  if (top.find("schema")) return read_model(document);
  return read_hf_config(document);
}

}  // namespace

namespace {

struct LayerField {
  std::string name;
  void (*read)(const JsonCursor& value, Model& model);
};

const std::vector<LayerField>& layer_fields() {
  using J = JsonCursor;
  static const std::vector<LayerField> all = {
      {"experts", [](const J& v, Model& m) { m.layer.experts = v.integer(1, max_experts); }},
      {"top_k", [](const J& v, Model& m) { m.layer.top_k = v.integer(1, max_experts); }},
      {"activation", [](const J& v, Model& m) { m.layer.activation = read_activation(v); }},
      {"gate_up_order",
       [](const J& v, Model& m) {
         m.layer.gate_up_order = static_cast<GateUpOrder>(v.one_of(order_names, "gate_up_order"));
       }},
      {"router_weight_on_input",
       [](const J& v, Model& m) { m.layer.router_weight_on_input = v.boolean(); }},
      {"routing_rule", read_routing},
  };
  return all;
}

}  // namespace

std::vector<std::string> layer_field_names() {
  std::vector<std::string> names;
  for (const LayerField& field : layer_fields()) names.push_back(field.name);
  return names;
}

void read_layer_field(const std::string& name, const JsonCursor& value, Model& model) {
  const auto field = std::ranges::find(layer_fields(), name, &LayerField::name);
  if (field == layer_fields().end()) {
    value.fail("unknown key " + in_quotes(name), suggestion(name, layer_field_names()));
  }
  field->read(value, model);
}

void read_layer_fields(const std::string& fields, const std::string& where, Model& model) {
  if (fields.empty()) return;
  const auto document = JsonDocument::parse(fields, where);
  for (const auto& [name, value] : JsonCursor(document).members()) {
    read_layer_field(name, value, model);
  }
}

namespace {

nlohmann::json fields_of(const Layer& layer) {
  nlohmann::json fields;
  const Activation& activation = layer.activation;
  fields["activation"]["kind"] = activation_words[static_cast<std::size_t>(activation.kind)];
  if (activation.kind == ActivationKind::swiglu_clamped) {
    fields["activation"]["alpha"] = activation.alpha;
    fields["activation"]["beta"] = activation.beta;
    fields["activation"]["limit"] = activation.limit;
  }
  fields["gate_up_order"] = order_names[static_cast<std::size_t>(layer.gate_up_order)];
  fields["router_weight_on_input"] = layer.router_weight_on_input;
  return fields;
}

nlohmann::json fields_of(const Router& router, bool correction_bias) {
  return {{"rule", std::string(to_string(router.rule))},
          {"renormalize", router.renormalize},
          {"groups", router.groups},
          {"top_groups", router.top_groups},
          {"scaling_factor", router.scaling_factor},
          {"correction_bias", correction_bias}};
}

}  // namespace

std::string layer_fields_of(const Layer& layer) { return fields_of(layer).dump(); }

std::string layer_fields_of(const OpProblem& problem) {
  nlohmann::json fields = fields_of(problem.layer);
  // Of a rank's share of the experts a tensor tells how many it holds.
  if (problem.layer.expert_map.empty()) fields["experts"] = problem.layer.experts;
  fields["top_k"] = problem.layer.top_k;
  const auto has_logits = [](const TensorSpec& spec) { return spec.name == "router_logits"; };
  if (std::ranges::any_of(problem.inputs, has_logits)) {
    fields["routing_rule"] = fields_of(problem.router, problem.correction_bias);
  }
  return fields.dump();
}

void check_model(const Model& model, const std::string& where) {
  const Layer& layer = model.layer;
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  for (const auto& [what, value, most] :
       {std::tuple{"experts", layer.experts, max_experts},
        {"a top_k", layer.top_k, max_experts},
        {"a hidden size", layer.hidden_size, max_layer_size},
        {"an intermediate size", layer.intermediate_size, max_layer_size}}) {
    if (value >= 1 && value <= most) continue;
    throw InputError(where, std::string(what) + " of " + number(value), "1 to " + number(most));
  }
  if (layer.top_k > layer.experts) {
    throw InputError(where,
                     "top_k " + number(layer.top_k) + " of " + number(layer.experts) + " experts",
                     "top_k must not exceed the number of experts");
  }
  if (layer.router_weight_on_input && layer.top_k != 1) {
    throw InputError(where, "router weight on input with top_k " + number(layer.top_k),
                     "it is defined for top_k 1 only");
  }
  if (layer.router_weight_on_input && layer.expert_bias) {
    throw InputError(where, "router weight on input with an expert bias",
                     "it is defined without w13 bias only");
  }
  if (model.routing_rule == "sigmoid_top1" && layer.top_k != 1) {
    throw InputError(where, "sigmoid_top1 routing with top_k " + number(layer.top_k),
                     "top_k must be 1");
  }
  if (layer.experts % model.groups != 0 || model.top_groups > model.groups ||
      model.top_groups * (layer.experts / model.groups) < layer.top_k) {
    throw InputError(where,
                     "top " + number(model.top_groups) + " of " + number(model.groups) +
                         " groups of " + number(layer.experts) + " experts cannot give " +
                         number(layer.top_k) + " experts",
                     "groups must divide the experts and the top groups hold top_k");
  }
}

std::vector<std::string> model_names(const fs::path& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(root / "suites" / "models", error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".json") names.push_back(at->path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

fs::path model_file(const std::string& name_or_path, const fs::path& root) {
  if (!is_path(name_or_path)) return root / "suites" / "models" / (name_or_path + ".json");
  std::error_code ignored;
  const fs::path given = name_or_path;
  return fs::is_directory(given, ignored) ? given / "config.json" : given;
}

Model load_model(const std::string& name_or_path, const fs::path& root) {
  const fs::path file = model_file(name_or_path, root);
  if (is_path(name_or_path)) return load_by_path(file);
  const auto names = model_names(root);
  if (names.empty()) {
    throw InputError((root / "suites" / "models").string(), "no model files there",
                     "give the folder that holds suites/models");
  }
  if (std::ranges::find(names, name_or_path) == names.end()) {
    const auto similar = similar_names(name_or_path, names, 3);
    throw InputError((root / "suites" / "models").string(), "no model " + in_quotes(name_or_path),
                     (similar.empty() ? "known: " + joined(names) : "nearest: " + joined(similar)) +
                         "; or give the path of a config.json");
  }
  Model model = read_model(JsonDocument::read(file));
  if (model.name != name_or_path) {
    throw InputError(file.string(), "the file holds a model named " + in_quotes(model.name),
                     "name and file must agree");
  }
  return model;
}

Router router_of(const Model& model) {
  return {.rule = routing_rule_from(model.routing_rule).value_or(RoutingRule::softmax),
          .experts = model.layer.experts,
          .top_k = model.layer.top_k,
          .renormalize = model.renormalize,
          .groups = model.groups,
          .top_groups = model.top_groups,
          .scaling_factor = model.scaling_factor,
          .shared_experts = model.shared_experts};
}

Layer rank_layer(const Model& model, std::int64_t tp, std::int64_t ep) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  Layer layer = model.layer;
  if (tp < 1 || layer.intermediate_size % tp != 0) {
    throw InputError(model.name,
                     "tp " + number(tp) + " does not divide the intermediate size " +
                         number(layer.intermediate_size),
                     "use a divisor");
  }
  if (ep < 1 || ep > layer.experts) {
    throw InputError(model.name, "ep " + number(ep) + " over " + number(layer.experts) + " experts",
                     "use 1 to " + number(layer.experts));
  }
  if (tp > 1) layer.whole_intermediate_size = layer.intermediate_size;
  layer.intermediate_size /= tp;
  if (ep > 1) {
    const std::int64_t local = (layer.experts + ep - 1) / ep;
    layer.expert_map.assign(static_cast<std::size_t>(layer.experts), -1);
    for (std::int64_t e = 0; e < local; ++e)
      layer.expert_map[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(e);
  }
  return layer;
}

}  // namespace moegauge
