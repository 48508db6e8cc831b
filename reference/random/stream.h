// Independent sequences of one seed. A stream is named by what it is for and by an index (an
// expert, a token, a draw); blocks of 128 bits are numbered within it. No two (seed, purpose,
// index, block) share a Philox counter and key.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/random/philox.h"

namespace moegauge {

// Fixed numbers: they are part of what a seed means. Append, never renumber.
enum class Purpose : std::uint32_t {
  x = 1,
  w13 = 2,
  w2 = 3,
  w13_bias = 4,
  w2_bias = 5,
  topk_ids = 6,
  topk_weights = 7,
  expert_popularity = 8,
  pool_order = 9,
  x_structure = 10,  // outlier channels, kinds of groups
  w13_structure = 11,
  w2_structure = 12,
  w13_spread = 13,
  w2_spread = 14,
  exact_pairs = 15,
};

class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t index)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        purpose_(static_cast<std::uint32_t>(purpose)),
        low_(static_cast<std::uint32_t>(index)),
        high_(static_cast<std::uint32_t>(index >> 32)) {}

  constexpr PhiloxCounter block(std::uint32_t number) const {
    return philox4x32(counter(number), key_);
  }
  // What block `number` is made of, for those who make many at once.
  constexpr PhiloxCounter counter(std::uint32_t number) const {
    return {number, low_, high_, purpose_};
  }
  constexpr PhiloxKey key() const { return key_; }
  // Word `number` of the sequence; four neighbours share one block.
  constexpr std::uint32_t word(std::uint64_t number) const {
    return block(static_cast<std::uint32_t>(number / 4))[number % 4];
  }

 private:
  PhiloxKey key_;
  std::uint32_t purpose_, low_, high_;
};

// Words of a stream in order, for code that draws until it is content.
class RandomWords {
 public:
  explicit constexpr RandomWords(const RandomStream& stream, std::uint32_t first_block = 0)
      : stream_(stream), number_(first_block) {}

  constexpr std::uint32_t next() {
    if (used_ == 4) {
      block_ = stream_.block(number_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  // Uniform in [0, n), n > 0, without bias (Lemire, 2019).
  constexpr std::uint32_t below(std::uint32_t n) {
    std::uint64_t product = std::uint64_t{next()} * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t threshold = (0u - n) % n;
      while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next()} * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }
  // Uniform in (0, 1): the middle of one of 2^32 equal intervals.
  constexpr double unit() { return (next() + 0.5) * 0x1p-32; }

 private:
  RandomStream stream_;
  PhiloxCounter block_ = {};
  std::uint32_t number_;
  std::size_t used_ = 4;
};

}  // namespace moegauge
