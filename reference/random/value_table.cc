#include "reference/random/value_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

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
  const float* table = values_.data();
  const auto expand = [table](const PhiloxCounter& b, float* to) {
    for (std::size_t w = 0; w < 4; ++w) {
      to[2 * w] = table[b[w] & 0xFFFFu];
      to[2 * w + 1] = table[b[w] >> 16];
    }
  };
  auto block = static_cast<std::uint32_t>(first / 8);
  std::size_t i = 0;
  // Several blocks at a time: the rounds of one are a chain, those of different blocks are not.
  for (; i + 32 <= out.size(); i += 32, block += 4) {
    PhiloxCounter b[4];
    for (std::uint32_t j = 0; j < 4; ++j) b[j] = stream.block(block + j);
    for (std::size_t j = 0; j < 4; ++j) expand(b[j], out.data() + i + 8 * j);
  }
  for (; i < out.size(); i += 8, ++block) {
    float eight[8];
    expand(stream.block(block), eight);
    std::copy_n(eight, std::min<std::size_t>(8, out.size() - i), out.data() + i);
  }
}

}  // namespace moegauge
