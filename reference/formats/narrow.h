// double to float by "round to odd" (Boldo and Melquiond, 2008): truncate, and set the last bit if
// anything was lost. A second rounding to a format at least two bits narrower then gives what one
// rounding of the double would have given.
#pragma once

#include <bit>
#include <cstdint>

namespace moegauge {

constexpr float narrow_to_odd(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint32_t>(bits >> 32) & 0x8000'0000u;
  const std::uint64_t magnitude = bits & 0x7FFF'FFFF'FFFF'FFFFull;
  constexpr std::uint64_t infinity = 0x7FF0'0000'0000'0000ull;
  if (magnitude > infinity) return std::bit_cast<float>(sign | 0x7FC0'0000u);
  if (magnitude == infinity) return std::bit_cast<float>(sign | 0x7F80'0000u);
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > 127)
    return std::bit_cast<float>(sign | 0x7F7F'FFFFu);  // odd, and not yet infinite
  const std::uint64_t significand =
      (magnitude & 0x000F'FFFF'FFFF'FFFFull) | (exponent > -1023 ? 0x0010'0000'0000'0000ull : 0);
  // 29 bits too many for a normal float, more below its smallest exponent, -126.
  int shift = 29;
  if (exponent < -126) shift += -126 - exponent;
  if (shift > 63) shift = 63;
  const std::uint64_t kept = significand >> shift;
  const bool lost = (kept << shift) != significand;
  std::uint32_t out = static_cast<std::uint32_t>(kept);
  if (exponent >= -126) {
    out = (out & 0x007F'FFFFu) | (static_cast<std::uint32_t>(exponent + 127) << 23);
  }
  return std::bit_cast<float>(sign | out | (lost ? 1u : 0u));
}

}  // namespace moegauge
