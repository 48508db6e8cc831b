// FP8 E4M3 in its two flavours: sign, 4 exponent bits, 3 mantissa bits, no infinity.
//   e4m3fn   (OCP 8-bit Floating Point Specification 1.0): bias 7, largest 448, NaN is 0x7F and
//   0xFF. e4m3fnuz (AMD gfx94x): bias 8, largest 240, one zero; 0x80, which would be -0, is the
//   NaN.
//
// Encoding rounds to nearest, ties to even, and saturates: values beyond the maximum, infinity
// included, give the maximum with their sign; a NaN stays a NaN.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace moegauge {

inline constexpr float kE4m3fnMax = 448.0f;
inline constexpr float kE4m3fnuzMax = 240.0f;
// Some engines saturate FNUZ activations here; a policy that a scheme names.
inline constexpr float kE4m3fnuzReducedMax = 224.0f;

namespace fp8_detail {

constexpr float decode_magnitude(std::uint32_t code, int bias) {
  const std::uint32_t exponent = (code >> 3) & 0xFu;
  const std::uint32_t mantissa = code & 0x7u;
  if (exponent == 0) {  // mantissa * 2^(1 - bias - 3)
    return static_cast<float>(mantissa) *
           std::bit_cast<float>(static_cast<std::uint32_t>(127 - bias - 2) << 23);
  }
  return std::bit_cast<float>(((exponent + static_cast<std::uint32_t>(127 - bias)) << 23) |
                              (mantissa << 20));
}

// The 7 magnitude bits of |value| clamped to `maximum`; `value` is not NaN.
constexpr std::uint32_t encode_magnitude(float value, int bias, float maximum) {
  // Magnitudes compare as their bits do. No branches: loops of this are vectors then.
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFFu;
  const auto most = std::bit_cast<std::uint32_t>(maximum);
  const std::uint32_t bits = magnitude < most ? magnitude : most;
  const auto rebias = static_cast<std::uint32_t>(127 - bias);
  // Below the smallest normal, 2^(1 - bias): adding a power of two whose last place is the
  // smallest subnormal, 2^(-2 - bias), makes the addition itself do the rounding.
  const std::uint32_t magic = (rebias - 2u + 23u) << 23;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(magic)) -
      magic;
  const std::uint32_t normal = ((bits + 0x7'FFFFu + ((bits >> 20) & 1u)) >> 20) - (rebias << 3);
  return bits < ((rebias + 1u) << 23) ? subnormal : normal;
}

constexpr bool is_nan(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFFu) > 0x7F80'0000u;
}

constexpr std::uint8_t sign_bit(float value) {
  return static_cast<std::uint8_t>((std::bit_cast<std::uint32_t>(value) >> 24) & 0x80u);
}

}  // namespace fp8_detail

constexpr float e4m3fn_to_float(std::uint8_t code) {
  if ((code & 0x7Fu) == 0x7Fu) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = fp8_detail::decode_magnitude(code & 0x7Fu, 7);
  return (code & 0x80u) != 0 ? -magnitude : magnitude;
}

constexpr float e4m3fnuz_to_float(std::uint8_t code) {
  if (code == 0x80u) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = fp8_detail::decode_magnitude(code & 0x7Fu, 8);
  return (code & 0x80u) != 0 ? -magnitude : magnitude;
}

constexpr std::uint8_t float_to_e4m3fn(float value) {
  const std::uint32_t magnitude = fp8_detail::encode_magnitude(value, 7, kE4m3fnMax);
  return static_cast<std::uint8_t>(fp8_detail::sign_bit(value) |
                                   (fp8_detail::is_nan(value) ? 0x7Fu : magnitude));
}

// `maximum`: kE4m3fnuzMax or kE4m3fnuzReducedMax. -0 and whatever rounds to it becomes 0x00.
constexpr std::uint8_t float_to_e4m3fnuz(float value, float maximum = kE4m3fnuzMax) {
  const std::uint32_t magnitude = fp8_detail::encode_magnitude(value, 8, maximum);
  const std::uint32_t code = magnitude == 0 ? 0u : fp8_detail::sign_bit(value) | magnitude;
  return static_cast<std::uint8_t>(fp8_detail::is_nan(value) ? 0x80u : code);
}

// An OCP code as the FNUZ code of half its value: the byte is kept and the caller doubles the
// scale. -0 becomes 0x00, both NaNs become 0x80.
constexpr std::uint8_t e4m3fn_to_e4m3fnuz_halved(std::uint8_t code) {
  if (code == 0x80u) return 0x00u;
  if ((code & 0x7Fu) == 0x7Fu) return 0x80u;
  return code;
}

// All 256 decoded values, for loops that would rather look up.
inline constexpr std::array<float, 256> kE4m3fnValues = [] {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < 256; ++i) values[i] = e4m3fn_to_float(static_cast<std::uint8_t>(i));
  return values;
}();
inline constexpr std::array<float, 256> kE4m3fnuzValues = [] {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < 256; ++i) values[i] = e4m3fnuz_to_float(static_cast<std::uint8_t>(i));
  return values;
}();

}  // namespace moegauge
