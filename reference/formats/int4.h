// 4-bit integers, two to a byte, the lower nibble first; and the orders in which checkpoints pack
// eight of them into a 32-bit word.
#pragma once

#include <array>
#include <cstdint>

namespace moegauge {

// Both arguments are read modulo 16.
constexpr std::uint8_t pack_nibbles(int first, int second) {
  return static_cast<std::uint8_t>((first & 0xF) | ((second & 0xF) << 4));
}

// Element 0 or 1 of a byte, as 0 .. 15.
constexpr int nibble(std::uint8_t byte, int element) { return (byte >> (4 * (element & 1))) & 0xF; }

// A nibble as a two's complement number, -8 .. 7.
constexpr int signed_nibble(int value) { return ((value & 0xF) ^ 8) - 8; }

// A nibble as stored with an offset of 8 (GPTQ and compressed-tensors symmetric), -8 .. 7.
constexpr int offset_nibble(int value) { return (value & 0xF) - 8; }

// AWQ packs, into nibble i of a 32-bit word, the element kAwqOrder[i] of a run of eight.
inline constexpr std::array<int, 8> kAwqOrder = {0, 2, 4, 6, 1, 3, 5, 7};

// Element 0 .. 7 of a word whose nibble i holds element i (GPTQ, compressed-tensors).
constexpr int word_nibble(std::uint32_t word, int element) {
  return static_cast<int>((word >> (4 * element)) & 0xFu);
}

// Element 0 .. 7 of a word packed by AWQ.
constexpr int awq_nibble(std::uint32_t word, int element) {
  // The inverse permutation of kAwqOrder: even elements lie in the lower half, odd in the upper.
  const int position = (element & 1) != 0 ? 4 + element / 2 : element / 2;
  return word_nibble(word, position);
}

// Round to nearest, ties to even, clamped to [lowest, 7]; a NaN gives 0.
constexpr int float_to_int4(float value, int lowest = -8) {
  if (value != value) return 0;
  const float floor = static_cast<float>(lowest);
  const float clamped = value < floor ? floor : value > 7.0f ? 7.0f : value;
  constexpr float magic = 0x1.8p23f;  // its last place is 1
  return static_cast<int>((clamped + magic) - magic);
}

}  // namespace moegauge
