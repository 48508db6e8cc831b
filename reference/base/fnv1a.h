// FNV-1a, 64 bits (Fowler, Noll and Vo): tells texts apart, and is no protection against anyone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace moegauge {

constexpr std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The same in 16 hex digits.
inline std::string fnv1a_hex(std::string_view text) {
  const std::uint64_t hash = fnv1a(text);
  std::string digits(16, '0');
  for (std::size_t i = 0; i < digits.size(); ++i) {
    digits[i] = "0123456789abcdef"[(hash >> (60 - 4 * i)) & 15];
  }
  return digits;
}

}  // namespace moegauge
