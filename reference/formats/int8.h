// Signed 8-bit integers as quantised values.
#pragma once

#include <cstdint>

namespace moegauge {

// Round to nearest, ties to even, clamped to [lowest, 127]; `lowest` is -127 for symmetric
// quantisation and -128 for the whole range. A NaN gives 0.
constexpr std::int8_t float_to_int8(float value, int lowest = -127) {
  if (value != value) return 0;
  const float floor = static_cast<float>(lowest);
  const float clamped = value < floor ? floor : value > 127.0f ? 127.0f : value;
  // Adding 1.5 * 2^23, whose last place is 1, makes the addition itself do the rounding.
  constexpr float magic = 0x1.8p23f;
  return static_cast<std::int8_t>((clamped + magic) - magic);
}

}  // namespace moegauge
