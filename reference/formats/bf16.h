// bfloat16: sign, 8 exponent bits, 7 mantissa bits; the upper half of an IEEE 754 binary32.
#pragma once

#include <bit>
#include <cstdint>

#include "reference/formats/narrow.h"

namespace moegauge {

constexpr float bf16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Round to nearest, ties to even. Overflow gives infinity. A NaN stays a NaN with its sign and
// upper payload, made quiet, so that rounding cannot carry it into an infinity.
constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFF'FFFFu) > 0x7F80'0000u) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// One rounding, where going through float would round twice.
constexpr std::uint16_t double_to_bf16(double value) { return float_to_bf16(narrow_to_odd(value)); }

}  // namespace moegauge
