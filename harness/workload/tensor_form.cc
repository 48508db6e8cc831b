#include "harness/workload/tensor_form.h"

#include <algorithm>

#include "reference/base/integers.h"

namespace moegauge {
namespace {

constexpr std::string_view kSuffixes[] = {"", "_scale", "_zero_point", "_g_idx"};

// Units that cover `size`; 0 is one for the whole extent.
std::int64_t units(std::int64_t size, std::int64_t unit) {
  return unit == 0 ? 1 : ceil_div(size, unit);
}

std::string name_of(Role role, std::string_view suffix) {
  return (role == Role::w13 ? "w13" : "w2") + std::string(suffix);
}

// Integers with a scale per group are stored unsigned, those with one per channel signed.
bool is_grouped_integer(const OperandTraits& weight) {
  return weight.scale == ScaleKind::activation_dtype;
}

TensorForm values_form(const SchemeTraits& traits, const MatrixShape& shape) {
  const std::int64_t packed = ceil_div(shape.cols, 2);
  switch (traits.weight.element) {
    case Element::activation_dtype:
      return {{tensor_dtype_of(traits.only.value_or(shape.dtype))}, {shape.rows, shape.cols}};
    case Element::e4m3fn:
    case Element::e4m3fnuz:
      return {{TensorDtype::f8_e4m3, TensorDtype::u8}, {shape.rows, shape.cols}};
    case Element::int8:
      return {{is_grouped_integer(traits.weight) ? TensorDtype::u8 : TensorDtype::i8},
              {shape.rows, shape.cols}};
    case Element::e2m1:
    case Element::int4:
      break;
  }
  return {{TensorDtype::u8}, {shape.rows, packed}};
}

TensorForm scales_form(const OperandTraits& weight, const MatrixShape& shape) {
  const std::vector<std::int64_t> grid = {units(shape.rows, weight.unit.rows),
                                          scales_of_row(weight, shape)};
  if (weight.scale == ScaleKind::e8m0) return {{TensorDtype::f8_e8m0, TensorDtype::u8}, grid, true};
  const bool fp32 = weight.scale == ScaleKind::fp32;
  return {{fp32 ? TensorDtype::f32 : tensor_dtype_of(shape.dtype)}, grid, true};
}

TensorForm zero_points_form(const OperandTraits& weight, const MatrixShape& shape) {
  const std::int64_t per_byte = weight.element == Element::int4 ? 2 : 1;
  return {{TensorDtype::u8}, {ceil_div(shape.rows, per_byte), scales_of_row(weight, shape)}};
}

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  return shape;
}

}  // namespace

std::string describe(const TensorForm& form) {
  std::string dtypes;
  for (std::size_t i = 0; i + 1 < form.dtypes.size(); ++i) {
    dtypes += std::string(to_string(form.dtypes[i])) + " or ";
  }
  return dtypes + describe(form.dtypes.back(), form.shape);
}

bool fits(const TensorInfo& tensor, const TensorForm& form) {
  if (std::ranges::count(form.dtypes, tensor.dtype) == 0) return false;
  if (form.loose) return without_ones(tensor.shape) == without_ones(form.shape);
  return tensor.shape == form.shape;
}

std::vector<CanonicalPart> canonical_parts(const Scheme& scheme, const MatrixShape& shape,
                                           std::int64_t experts) {
  const SchemeTraits traits = scheme.traits();
  std::vector<CanonicalPart> parts;
  const auto add = [&](std::size_t suffix, TensorForm form, std::span<std::byte> Matrix::*bytes) {
    form.shape.insert(form.shape.begin(), experts);
    parts.push_back({name_of(shape.role, kSuffixes[suffix]), std::move(form), bytes});
  };
  add(0, values_form(traits, shape), &Matrix::values);
  if (traits.weight.scale != ScaleKind::none) {
    add(1, scales_form(traits.weight, shape), &Matrix::scales);
  }
  if (traits.weight.zero_points) {
    add(2, zero_points_form(traits.weight, shape), &Matrix::zero_points);
  }
  if (traits.weight.group_index) {
    add(3, {{TensorDtype::i32}, {shape.cols}}, &Matrix::group_index);
  }
  return parts;
}

std::optional<TensorForm> split_scale_form(const Scheme& scheme, const MatrixShape& shape,
                                           std::int64_t experts) {
  const OperandTraits weight = scheme.traits().weight;
  const bool one = weight.scale == ScaleKind::fp32 && weight.unit == ScaleUnit{0, 0};
  if (!one || shape.role != Role::w13) return std::nullopt;
  return TensorForm{{TensorDtype::f32}, {experts, 2}};
}

std::vector<std::string> part_names(Role role) {
  std::vector<std::string> names;
  for (const std::string_view suffix : kSuffixes) names.push_back(name_of(role, suffix));
  return names;
}

TensorForm original_form(const MatrixShape& shape, std::int64_t experts) {
  return {{TensorDtype::bf16, TensorDtype::f16, TensorDtype::f32},
          {experts, shape.rows, shape.cols}};
}

TensorDtype tensor_dtype_of(Dtype dtype) {
  return dtype == Dtype::bf16 ? TensorDtype::bf16 : TensorDtype::f16;
}

}  // namespace moegauge
