#include "kernels/cpu/ops/grouped_experts.h"

#include <algorithm>

namespace moegauge::cpu {
namespace {

// A layer whose second GEMM is the one asked for: its columns are not paired.
Layer as_down(const OpProblem& p) {
  Layer layer = p.layer;
  layer.hidden_size = columns_of(p);
  layer.intermediate_size = contracted_of(p);
  layer.expert_bias = false;
  return layer;
}

MatrixLayout layout_of(const OpProblem& p, const KernelTable& kernels) {
  const Recipe recipe = recipe_of(p);
  return {as_down(p), Role::w2, recipe,
          kernels.weight_layout(recipe.weight, kernels.dot_unit(recipe.activation))};
}

}  // namespace

std::int64_t contracted_of(const OpProblem& p) { return p.inputs[0].shape.back(); }
std::int64_t columns_of(const OpProblem& p) { return p.outputs[0].shape.back(); }

Layer for_tasks(const OpProblem& p) {
  Layer layer = p.layer;
  layer.hidden_size = contracted_of(p);
  layer.intermediate_size = columns_of(p);
  return layer;
}

Recipe recipe_of(const OpProblem& p) { return find_recipe(*p.scheme, p.layer)->recipe; }

PackedExperts::PackedExperts(const OpProblem& p, std::span<const Tensor> weights, int sets,
                             const OpContext& context)
    : layout_(layout_of(p, context.kernels())) {
  const Served served = *find_recipe(*p.scheme, p.layer);
  const std::int64_t experts = p.layer.local_experts();
  for (int set = 0; set < sets; ++set) sets_.emplace_back(experts * layout_.bytes());
  context.pool->parallel_for(experts, [&](std::int64_t e) {
    layout_.pack(matrix(weights, experts, e), {}, *served.scheme,
                 sets_[0].data() + e * layout_.bytes());
    for (std::size_t set = 1; set < sets_.size(); ++set) {
      std::copy_n(sets_[0].data() + e * layout_.bytes(), layout_.bytes(),
                  sets_[set].data() + e * layout_.bytes());
    }
  });
}

ConstMatrix PackedExperts::matrix(std::span<const Tensor> weights, std::int64_t experts,
                                  std::int64_t e) const {
  ConstMatrix m = {.shape = layout_.shape()};
  const auto part = [&](const char* name) -> std::span<const std::byte> {
    const Tensor* tensor = find_tensor(weights, name);
    if (tensor == nullptr) return {};
    const std::size_t bytes = tensor->bytes.size() / static_cast<std::size_t>(experts);
    return std::span(tensor->bytes).subspan(static_cast<std::size_t>(e) * bytes, bytes);
  };
  m.values = part("b");
  m.scales = part("b_scale");
  m.zero_points = part("b_zero_point");
  m.group_index = part("b_g_idx");
  return m;
}

}  // namespace moegauge::cpu
