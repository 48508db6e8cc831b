// E8M0, the shared scale of the microscaling formats (OCP MX Specification 1.0): code b is
// 2^(b - 127); 255 is NaN; there is no zero, no sign and no infinity.
#pragma once

#include <bit>
#include <cstdint>

namespace moegauge {

inline constexpr std::uint8_t kE8m0Nan = 255;

// Exact: 0 is 2^-127, a subnormal float.
constexpr float e8m0_to_float(std::uint8_t code) {
  if (code == 0) return std::bit_cast<float>(0x0040'0000u);
  if (code == kE8m0Nan) return std::bit_cast<float>(0x7FC0'0000u);
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 23);
}

namespace e8m0_detail {

// value = significand * 2^(exponent - 23), significand in [2^23, 2^24).
struct Parts {
  int exponent;
  std::uint32_t significand;
};

constexpr Parts split(float positive) {
  const auto bits = std::bit_cast<std::uint32_t>(positive);
  if (bits >= 0x0080'0000u) {
    return {static_cast<int>(bits >> 23) - 127, (bits & 0x007F'FFFFu) | 0x0080'0000u};
  }
  const int lift = std::countl_zero(bits) - 8;  // a subnormal's leading one, moved to bit 23
  return {-126 - lift, bits << lift};
}

constexpr std::uint8_t clamp_code(int exponent) {
  const int clamped = exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
  return static_cast<std::uint8_t>(clamped + 127);
}

constexpr bool is_nan(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFFu) > 0x7F80'0000u;
}

}  // namespace e8m0_detail

// The smallest scale under which no element of a group with largest magnitude `amax` exceeds
// `maximum` (448 for E4M3, 6 for E2M1): clamp(ceil(log2(amax / maximum)), -127, 127) + 127, exact,
// by comparing exponents and significands. amax 0 gives 2^-127, infinity counts as 2^128, NaN gives
// NaN.
constexpr std::uint8_t e8m0_ceil(float amax, float maximum) {
  if (e8m0_detail::is_nan(amax)) return kE8m0Nan;
  if (!(amax > 0)) return 0;
  const auto a = e8m0_detail::split(amax);
  const auto m = e8m0_detail::split(maximum);
  return e8m0_detail::clamp_code(a.exponent - m.exponent + (a.significand > m.significand ? 1 : 0));
}

// clamp(floor(log2(amax)) - element_exponent, -127, 127) + 127. element_exponent is the exponent
// of the element format's largest value in the OCP rule (8 for E4M3, 2 for E2M1), under which the
// largest elements may saturate; engines that write floor(log2(amax)) + 127 use 0.
constexpr std::uint8_t e8m0_floor(float amax, int element_exponent) {
  if (e8m0_detail::is_nan(amax)) return kE8m0Nan;
  if (!(amax > 0)) return 0;
  return e8m0_detail::clamp_code(e8m0_detail::split(amax).exponent - element_exponent);
}

}  // namespace moegauge
