#include "reference/random/value_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "reference/base/clones.h"
#include "reference/dtype.h"
#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

constexpr std::size_t kSize = 65536;

// The upper half of the standard normal quantiles; the lower half mirrors it exactly.
const std::vector<double>& upper_quantiles() {
  static const std::vector<double> quantiles = [] {
    std::vector<double> q(kSize / 2);
    for (std::size_t i = 0; i < q.size(); ++i) {
      q[i] = normal_quantile(0.5 + (static_cast<double>(i) + 0.5) / kSize);
    }
    return q;
  }();
  return quantiles;
}

void look_up(const float* table, const PhiloxCounter& block, float* to) {
  for (std::size_t w = 0; w < 4; ++w) {
    to[2 * w] = table[block[w] & 0xFFFFu];
    to[2 * w + 1] = table[block[w] >> 16];
  }
}

// Blocks that are made together: the rounds of one are a chain, those of different blocks are not.
constexpr std::uint32_t kBlocks = 64;
constexpr std::size_t kValues = 8 * kBlocks;
struct Blocks {
  std::uint32_t word[4][kBlocks];
};

// From one place to another, which compilers make vectors of.
inline void mix(const Blocks& __restrict in, const PhiloxKey& key, Blocks& __restrict out) {
  for (std::uint32_t j = 0; j < kBlocks; ++j) {
    std::uint32_t a = in.word[0][j], b = in.word[1][j], c = in.word[2][j], d = in.word[3][j];
    philox_round(a, b, c, d, key);
    out.word[0][j] = a;
    out.word[1][j] = b;
    out.word[2][j] = c;
    out.word[3][j] = d;
  }
}

MOEGAUGE_CLONES void fill_blocks(const float* __restrict table, PhiloxCounter first, PhiloxKey key,
                                 float* __restrict out) {
  Blocks even, odd;
  for (std::uint32_t j = 0; j < kBlocks; ++j) even.word[0][j] = first[0] + j;
  for (std::size_t w = 1; w < 4; ++w) std::ranges::fill(even.word[w], first[w]);
  static_assert(kPhiloxRounds % 2 == 0);
  for (int round = 0; round < kPhiloxRounds; round += 2) {
    mix(even, key, odd);
    philox_next_key(key);
    mix(odd, key, even);
    philox_next_key(key);
  }
  for (std::uint32_t j = 0; j < kBlocks; ++j, out += 8) {
    for (std::size_t w = 0; w < 4; ++w) {
      out[2 * w] = table[even.word[w][j] & 0xFFFFu];
      out[2 * w + 1] = table[even.word[w][j] >> 16];
    }
  }
}

template <typename Quantile>
std::vector<float> symmetric(double scale, Dtype dtype, const Quantile& upper) {
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize / 2; ++i) {
    const auto v = static_cast<float>(round_to(dtype, upper(i) * scale));
    values[kSize / 2 + i] = v;
    values[kSize / 2 - 1 - i] = -v;
  }
  return values;
}

}  // namespace

ValueTable ValueTable::gaussian(double deviation, Dtype dtype) {
  const auto& q = upper_quantiles();
  return ValueTable(symmetric(deviation, dtype, [&](std::size_t i) { return q[i]; }));
}

ValueTable ValueTable::uniform(double deviation, Dtype dtype) {
  // A uniform distribution on [-a, a] has deviation a / sqrt(3).
  return ValueTable(symmetric(deviation * std::sqrt(3.0), dtype, [](std::size_t i) {
    return (2 * static_cast<double>(i) + 1) / kSize;
  }));
}

void ValueTable::fill(const RandomStream& stream, std::int64_t first, std::span<float> out) const {
  auto block = static_cast<std::uint32_t>(first / 8);
  for (; out.size() >= kValues; out = out.subspan(kValues), block += kBlocks) {
    fill_blocks(values_.data(), stream.counter(block), stream.key(), out.data());
  }
  for (; !out.empty(); ++block) {
    float eight[8];
    look_up(values_.data(), stream.block(block), eight);
    const std::size_t n = std::min<std::size_t>(8, out.size());
    std::copy_n(eight, n, out.data());
    out = out.subspan(n);
  }
}

}  // namespace moegauge
