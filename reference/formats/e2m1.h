// E2M1, the 4-bit element of MXFP4 (OCP MX Specification 1.0): sign, 2 exponent bits (bias 1), one
// mantissa bit; 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; no infinity, no NaN.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace moegauge {

inline constexpr float kE2m1Max = 6.0f;
inline constexpr std::array<float, 16> kE2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                      4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                      -2.0f, -3.0f, -4.0f, -6.0f};

// Reads the low four bits.
constexpr float e2m1_to_float(std::uint8_t code) { return kE2m1Values[code & 0xFu]; }

// Round to nearest, ties to the code with an even mantissa bit, saturating at 6. The sign is kept,
// also of zero. A NaN has no code: it gives the largest magnitude with its sign, and it is the
// group's scale that carries the NaN (e8m0.h).
constexpr std::uint8_t float_to_e2m1(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 28) & 0x8u);
  const float v = std::bit_cast<float>(bits & 0x7FFF'FFFFu);
  // Thresholds passed, without branches; each comparison is so turned that a NaN passes it, and so
  // that the tie goes to the even code.
  const int code = !(v <= 0.25f) + !(v < 0.75f) + !(v <= 1.25f) + !(v < 1.75f) + !(v <= 2.5f) +
                   !(v < 3.5f) + !(v <= 5.0f);
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace moegauge
