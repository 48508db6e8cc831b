// Weights of 4 or 8 bits with a scale per row and group of columns, activations in the layer's own
// 16-bit type: integers with scales in that type, symmetric or with zero points (w4a16, w8a16), and
// E2M1 with powers of two (mxfp4).
//
// Codes reach the dot products as small exact numbers, so that products are exact in fp32; each
// group has its own fp32 sum, scaled once. A zero point is no part of the codes: it multiplies the
// sum of the group's activations, which is taken once for all columns, and is subtracted before the
// scale is applied. The activation function's output is rounded to the layer's dtype before the
// second GEMM, everything else stays in fp32.
#include <cstring>

#include "kernels/cpu/schemes/cpu_scheme.h"
#include "reference/dtype.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/int4.h"

namespace moegauge::cpu {
namespace {

struct Codes {
  WeightCodec codec;
  std::uint8_t flipped_bits;  // an offset of 8 or 128 and two's complement differ in one bit
};
std::optional<Codes> codes(const OperandTraits& w) {
  const bool integer = w.scale == ScaleKind::activation_dtype;
  if (w.element == Element::int4 && integer) return Codes{WeightCodec::int4, 0x88};
  if (w.element == Element::int8 && integer) return Codes{WeightCodec::int8, 0x80};
  if (w.element == Element::e2m1 && w.scale == ScaleKind::e8m0) return Codes{WeightCodec::e2m1, 0};
  return std::nullopt;
}

std::optional<Recipe> recipe(const SchemeTraits& traits, const Layer& layer) {
  const OperandTraits& w = traits.weight;
  const OperandTraits& x = traits.activation;
  if (x.element != Element::activation_dtype || x.scale != ScaleKind::none) return std::nullopt;
  const auto served = codes(w);
  if (!served || w.unit.rows != 1 || w.unit.cols % kPadElements != 0) return std::nullopt;
  if (w.group_index && w.unit.cols == 0) return std::nullopt;
  const bool bf16 = layer.dtype == Dtype::bf16;
  return Recipe{
      .weight = served->codec,
      .flipped_bits = served->flipped_bits,
      .scales = w.scale,
      // Powers of two and small integers are exact in either type.
      .scale_type = w.scale == ScaleKind::e8m0 || bf16 ? ScaleType::bf16 : ScaleType::fp16,
      .group = w.unit.cols,
      .scale_rows = 1,
      .zero_points = w.zero_points,
      .group_index = w.group_index,
      .activation = bf16 ? ActivationCodec::bf16 : ActivationCodec::fp16,
      .numerics = {.act_out = Precision::activation_dtype}};
}

// From the storage and not from the columns: a slice of a matrix with a group index keeps all
// groups.
std::int64_t groups_of(const ConstMatrix& w, const Recipe& recipe) {
  const auto each = recipe.scales == ScaleKind::e8m0 ? 1 : sizeof(std::uint16_t);
  return static_cast<std::int64_t>(w.scales.size() / each) / w.shape.rows;
}

float weight_scale(const ConstMatrix& w, const Recipe& recipe, std::int64_t row,
                   std::int64_t group) {
  const auto index = static_cast<std::size_t>(row * groups_of(w, recipe) + group);
  if (recipe.scales == ScaleKind::e8m0) {
    return e8m0_to_float(static_cast<std::uint8_t>(w.scales[index]));
  }
  std::uint16_t bits;
  std::memcpy(&bits, w.scales.data() + index * sizeof bits, sizeof bits);
  return to_float(w.shape.dtype, bits);
}

// int4: two rows to a byte. Relative to the middle code, as the kernels' codes are.
float weight_zero(const ConstMatrix& w, const Recipe& recipe, std::int64_t row,
                  std::int64_t group) {
  const std::int64_t groups = groups_of(w, recipe);
  const bool int4 = recipe.weight == WeightCodec::int4;
  const std::int64_t index = (int4 ? row / 2 : row) * groups + group;
  const auto byte = static_cast<std::uint8_t>(w.zero_points[static_cast<std::size_t>(index)]);
  return static_cast<float>(int4 ? nibble(byte, static_cast<int>(row % 2)) - 8 : byte - 128);
}

}  // namespace

const CpuScheme& weight_only_scheme() {
  static constexpr CpuScheme scheme = {
      .recipe = &recipe, .weight_scale = &weight_scale, .weight_zero = &weight_zero};
  return scheme;
}

}  // namespace moegauge::cpu
