// The layer's 16-bit element type at run time (see reference/formats for the formats themselves).
#pragma once

#include <cstdint>

#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"
#include "reference/layer.h"

namespace moegauge {

constexpr float to_float(Dtype dtype, std::uint16_t bits) {
  return dtype == Dtype::bf16 ? bf16_to_float(bits) : fp16_to_float(bits);
}

// Round to nearest even.
constexpr std::uint16_t to_bits(Dtype dtype, float value) {
  return dtype == Dtype::bf16 ? float_to_bf16(value) : float_to_fp16(value);
}

constexpr float round_to(Dtype dtype, float value) {
  return to_float(dtype, to_bits(dtype, value));
}
// One rounding, not two by way of float.
constexpr double round_to(Dtype dtype, double value) {
  return to_float(dtype, dtype == Dtype::bf16 ? double_to_bf16(value) : double_to_fp16(value));
}

// The least magnitude that rounds to infinity: half a step beyond the largest finite value, whose
// even neighbour it is not. fp16: 65504 + 16. bf16: (2 - 2^-7) 2^127 + 2^119.
constexpr double overflow_threshold(Dtype dtype) {
  return dtype == Dtype::bf16 ? 0x1.FFp127 : 65520.0;
}

}  // namespace moegauge
