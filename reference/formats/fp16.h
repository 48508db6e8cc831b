// IEEE 754 binary16: sign, 5 exponent bits (bias 15), 10 mantissa bits.
#pragma once

#include <bit>
#include <cstdint>

#include "reference/formats/narrow.h"

namespace moegauge {

constexpr float fp16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24, exact in float
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F80'0000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23) | (mantissa << 13));
}

// Round to nearest, ties to even, subnormals included; from 65520 on infinity. A NaN stays a NaN
// with its sign and upper payload, made quiet.
constexpr std::uint16_t float_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFu;
  if (magnitude > 0x7F80'0000u) {
    return static_cast<std::uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  }
  if (magnitude >= 0x4780'0000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // 65536 on
  if (magnitude < 0x3880'0000u) {
    // Below 2^-14: adding 1/2, whose last place is 2^-24, makes the addition itself do the
    // rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign |
                                      (std::bit_cast<std::uint32_t>(shifted) - 0x3F00'0000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - ((127u - 15u) << 10)));
}

// One rounding, where going through float would round twice.
constexpr std::uint16_t double_to_fp16(double value) { return float_to_fp16(narrow_to_odd(value)); }

}  // namespace moegauge
