// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011): a bijection of 128-bit counters under a 64-bit key, statistically random. Random by
// position: any part of a sequence is made without the rest.
#pragma once

#include <array>
#include <cstdint>

namespace moegauge {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr int kPhiloxRounds = 10;

// One round on the words of a counter.
constexpr void philox_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d,
                            const PhiloxKey& k) {
  const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * a, p1 = std::uint64_t{0xCD9E8D57u} * c;
  const std::uint32_t kept_b = b, kept_d = d;
  a = static_cast<std::uint32_t>(p1 >> 32) ^ kept_b ^ k[0];
  b = static_cast<std::uint32_t>(p1);
  c = static_cast<std::uint32_t>(p0 >> 32) ^ kept_d ^ k[1];
  d = static_cast<std::uint32_t>(p0);
}
constexpr void philox_next_key(PhiloxKey& k) {
  k[0] += 0x9E3779B9u;
  k[1] += 0xBB67AE85u;
}

constexpr PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey k) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    philox_round(c[0], c[1], c[2], c[3], k);
    philox_next_key(k);
  }
  return c;
}

}  // namespace moegauge
