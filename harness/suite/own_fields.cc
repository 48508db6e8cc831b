#include "harness/suite/own_fields.h"

#include <variant>

#include "reference/base/input_error.h"

namespace moegauge {
namespace {

constexpr const char* shared_experts_field = "shared_experts";

}  // namespace

std::vector<OpField> own_fields(const std::string& op) {
  if (const Op* single = find_op(op)) return single->fields();
  return {{.name = shared_experts_field,
           .words = {"separate", "fused"},
           .fallback = std::string("separate")}};
}

OpFields op_fields_of(const CaseCoordinates& c) {
  OpFields fields = op_fields_from(c.op_fields, case_id(c));
  for (const OpField& field : own_fields(c.op)) fields.emplace(field.name, field.fallback);
  return fields;
}

std::int64_t fused_experts(const CaseCoordinates& c, const Model& model) {
  if (find_op(c.op) != nullptr) return 0;
  if (std::get<std::string>(op_fields_of(c).at(shared_experts_field)) == "separate") return 0;
  if (model.shared_experts > 0) return model.shared_experts;
  throw InputError(case_id(c), "the model has no shared experts to fuse",
                   "leave shared_experts out");
}

Layer with_fused_experts(Layer layer, std::int64_t fused) {
  auto local = static_cast<std::int32_t>(layer.local_experts());
  for (std::int64_t s = 0; s < fused && !layer.expert_map.empty(); ++s) {
    layer.expert_map.push_back(local++);
  }
  layer.experts += fused;
  layer.top_k += fused;
  return layer;
}

Layer routed_part(Layer layer, std::int64_t fused) {
  layer.experts -= fused;
  layer.top_k -= fused;
  if (!layer.expert_map.empty()) layer.expert_map.resize(static_cast<std::size_t>(layer.experts));
  return layer;
}

}  // namespace moegauge
