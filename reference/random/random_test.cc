#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "reference/dtype.h"
#include "reference/random/philox.h"
#include "reference/random/portable_math.h"
#include "reference/random/stream.h"
#include "reference/random/value_table.h"

namespace moegauge {
namespace {

// kat_vectors of Random123 1.14: philox4x32 10, counter, key, output.
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                         {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                         {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(RandomStream, SeedPurposeIndexAndBlockAllMatter) {
  std::set<PhiloxCounter> seen;
  for (const std::uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (const auto purpose : {Purpose::x, Purpose::w13}) {
      for (const std::uint64_t index : {0ull, 1ull, 1ull << 32}) {
        for (const std::uint32_t block : {0u, 1u}) {
          seen.insert(RandomStream(seed, purpose, index).block(block));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 2 * 3 * 2);
}

TEST(RandomWords, ComeInTheOrderOfTheStream) {
  const RandomStream stream(7, Purpose::x, 3);
  RandomWords words(stream);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(words.next(), stream.word(i));
}

TEST(RandomWords, BelowIsUniform) {
  RandomWords words(RandomStream(1, Purpose::topk_ids, 0));
  std::vector<int> counts(7, 0);
  constexpr int n = 70000;
  for (int i = 0; i < n; ++i) ++counts.at(words.below(7));
  double chi2 = 0;
  for (const int c : counts) chi2 += (c - n / 7.0) * (c - n / 7.0) / (n / 7.0);
  EXPECT_LT(chi2, 22.46);  // 6 degrees of freedom, one in a thousand
}

TEST(PortableMath, AgreesWithTheCLibrary) {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    EXPECT_NEAR(portable_log(x), std::log(x), 4e-16 * std::max(1.0, std::fabs(std::log(x)))) << x;
  }
  for (double x = 0.5; x < 2; x += 0.001) EXPECT_NEAR(portable_log(x), std::log(x), 3e-16) << x;
  for (double x = -700; x < 700; x += 0.37) {
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1.0, 1e-15) << x;
  }
  EXPECT_EQ(portable_exp(-1000), 0);
  EXPECT_TRUE(std::isinf(portable_exp(1000)));
  EXPECT_EQ(portable_exp(0), 1);
}

TEST(PortableMath, TheNormalQuantileInvertsTheDistributionFunction) {
  for (double p = 1e-12; p < 1; p = p < 1e-3 ? p * 3 : p + 1e-3) {
    const double z = normal_quantile(p);
    const double back = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(back / p, 1.0, 1e-13) << p;
  }
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);  // tabulated
  EXPECT_EQ(normal_quantile(0.5), 0);
}

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0;
};
Moments moments(const std::vector<float>& v) {
  Moments m;
  for (const double x : v) m.mean += x;
  m.mean /= static_cast<double>(v.size());
  double second = 0, fourth = 0;
  for (const double x : v) {
    const double d = (x - m.mean) * (x - m.mean);
    second += d;
    fourth += d * d;
  }
  m.variance = second / static_cast<double>(v.size());
  m.kurtosis = fourth / static_cast<double>(v.size()) / (m.variance * m.variance);
  return m;
}

TEST(ValueTable, GaussianMoments) {
  constexpr int n = 1 << 20;
  std::vector<float> v(n);
  ValueTable::gaussian(2.0, Dtype::bf16).fill(RandomStream(5, Purpose::x, 0), 0, v);
  const Moments m = moments(v);
  // Five standard errors: sigma/sqrt(n), sigma^2 sqrt(2/n), sqrt(24/n).
  EXPECT_NEAR(m.mean, 0, 5 * 2.0 / std::sqrt(n));
  EXPECT_NEAR(m.variance, 4, 5 * 4 * std::sqrt(2.0 / n));
  EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24.0 / n));
}

TEST(ValueTable, UniformMoments) {
  constexpr int n = 1 << 20;
  std::vector<float> v(n);
  const auto table = ValueTable::uniform(1.0, Dtype::bf16);
  table.fill(RandomStream(5, Purpose::x, 0), 0, v);
  const Moments m = moments(v);
  EXPECT_NEAR(m.mean, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(m.variance, 1, 0.005);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.01);
  EXPECT_NEAR(table.largest(), std::sqrt(3.0), 0.01);
}

TEST(ValueTable, ValuesAreOfTheirDtypeAndSymmetric) {
  for (const auto dtype : {Dtype::bf16, Dtype::fp16}) {
    const auto table = ValueTable::gaussian(1.0 / std::sqrt(2048.0), dtype);
    for (std::uint32_t i = 0; i < 65536; ++i) {
      ASSERT_EQ(round_to(dtype, table.at(i)), table.at(i));
      ASSERT_EQ(table.at(i), -table.at(65535 - i));
    }
  }
}

TEST(ValueTable, AnySplitOfTheRangeGivesTheSameBits) {
  const auto table = ValueTable::gaussian(1.0, Dtype::bf16);
  const RandomStream stream(9, Purpose::w13, 4);
  std::vector<float> whole(1003), parts(1003);
  table.fill(stream, 0, whole);
  std::size_t at = 0;
  for (const std::size_t length : {8u, 40u, 256u, 699u}) {
    table.fill(stream, static_cast<std::int64_t>(at), std::span(parts).subspan(at, length));
    at += length;
  }
  ASSERT_EQ(at, whole.size());
  EXPECT_EQ(whole, parts);
}

TEST(ValueTable, BitsAreTheSameOnEveryMachine) {
  // Computed in Python from philox4x32 (counter 0, 3, 0, purpose 1; key 42, 0) and
  // statistics.NormalDist().inv_cdf, rounded to bf16.
  std::vector<float> v(8);
  ValueTable::gaussian(1.0, Dtype::bf16).fill(RandomStream(42, Purpose::x, 3), 0, v);
  EXPECT_EQ(v, (std::vector<float>{0.1591796875f, 0.58203125f, 0.259765625f, -1.7734375f,
                                   -0.1591796875f, 0.35546875f, 0.05224609375f, -0.984375f}));
}

TEST(ValueTable, NeighbouringStreamsAreUncorrelated) {
  constexpr int n = 1 << 16;
  const auto table = ValueTable::gaussian(1.0, Dtype::bf16);
  std::vector<float> a(n), b(n);
  table.fill(RandomStream(5, Purpose::w13, 0), 0, a);
  for (const auto& other : {RandomStream(5, Purpose::w13, 1), RandomStream(6, Purpose::w13, 0),
                            RandomStream(5, Purpose::w2, 0)}) {
    table.fill(other, 0, b);
    double dot = 0;
    for (std::size_t i = 0; i < a.size(); ++i) dot += static_cast<double>(a[i]) * b[i];
    EXPECT_NEAR(dot / n, 0, 5 / std::sqrt(n));
  }
}

}  // namespace
}  // namespace moegauge
