#include "reference/ops/grouped_weights.h"

#include "reference/base/thread_pool.h"
#include "reference/inputs.h"
#include "reference/ops/quantization.h"

namespace moegauge {
namespace {

std::int64_t units(std::int64_t size, std::int64_t unit) {
  return unit == 0 ? 1 : (size + unit - 1) / unit;
}

TensorType value_type(const OperandTraits& traits, Dtype dtype) {
  if (traits.element == Element::activation_dtype) return tensor_type(dtype);
  // Integers with a scale per group are stored unsigned.
  return traits.scale == ScaleKind::activation_dtype ? TensorType::packed
                                                     : code_type(traits.element);
}

TensorType scale_type(const OperandTraits& traits, Dtype dtype) {
  return traits.scale == ScaleKind::e8m0   ? TensorType::e8m0
         : traits.scale == ScaleKind::fp32 ? TensorType::fp32
                                           : tensor_type(dtype);
}

bool is_nibbles(Element element) { return element == Element::int4 || element == Element::e2m1; }

}  // namespace

std::vector<TensorSpec> grouped_weights(const OpProblem& p) {
  const GroupedShape shape = grouped_shape(p);
  const MatrixShape matrix = weight_shape(p.layer, shape.role);
  const OperandTraits traits = p.scheme->traits().weight;
  const std::int64_t experts = shape.experts, per_byte = is_nibbles(traits.element) ? 2 : 1;
  std::vector<TensorSpec> weights = {{"b",
                                      value_type(traits, p.layer.dtype),
                                      {experts, matrix.rows, units(matrix.cols, per_byte)}}};
  if (traits.scale == ScaleKind::none) return weights;
  const std::int64_t across = scales_of_row(traits, matrix);
  weights.push_back({"b_scale",
                     scale_type(traits, p.layer.dtype),
                     {experts, units(matrix.rows, traits.unit.rows), across}});
  if (traits.zero_points) {
    weights.push_back(
        {"b_zero_point", TensorType::packed, {experts, units(matrix.rows, per_byte), across}});
  }
  if (traits.group_index) {
    weights.push_back({"b_g_idx", TensorType::int32, {experts, matrix.cols}});
  }
  return weights;
}

// Expert e's part of each weight tensor, as its scheme reads it.
ConstMatrix expert_matrix(const GroupedShape& shape, const Layer& layer,
                          std::span<const Tensor> weights, std::int64_t expert) {
  ConstMatrix m = {.shape = weight_shape(layer, shape.role)};
  const auto part = [&](const char* name) -> std::span<const std::byte> {
    const Tensor* tensor = find_tensor(weights, name);
    if (tensor == nullptr) return {};
    const std::size_t bytes = tensor->bytes.size() / static_cast<std::size_t>(shape.experts);
    return std::span(tensor->bytes).subspan(static_cast<std::size_t>(expert) * bytes, bytes);
  };
  m.values = part("b");
  m.scales = part("b_scale");
  m.zero_points = part("b_zero_point");
  m.group_index = part("b_g_idx");
  return m;
}

std::unique_ptr<ExpertSource> experts_of(const OpProblem& p, const OpDraw& draw) {
  return generated_experts(p.layer, p.scheme, draw.distribution, draw.seed, draw.unit_spread);
}

std::vector<Tensor> draw_grouped_weights(const OpProblem& p, const OpDraw& draw) {
  const GroupedShape shape = grouped_shape(p);
  auto weights = make_tensors(p.weights);
  const auto experts = experts_of(p, draw);
  ThreadPool pool(ThreadPool::usable_processors());
  pool.parallel_for(shape.experts, [&](std::int64_t e) {
    const ConstMatrix m = expert_matrix(shape, p.layer, weights, e);
    const auto writable = [](std::span<const std::byte> part) {
      return std::span(const_cast<std::byte*>(part.data()), part.size());
    };
    experts->quantized(e, {m.shape, writable(m.values), writable(m.scales), writable(m.zero_points),
                           writable(m.group_index)});
  });
  return weights;
}

}  // namespace moegauge
