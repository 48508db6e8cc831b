#include "reference/convert/mxfp8_to_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"

namespace moegauge {
namespace {

using ::testing::ElementsAre;

struct Input {
  std::int64_t experts = 1, rows = 0, cols = 0;
  std::vector<std::uint8_t> values, scales;
};

struct Output {
  std::vector<std::uint8_t> values;
  std::vector<float> scales;
  BlockConversion sums;
};

Output convert(const Input& in, const BlockTarget& target, int threads = 2) {
  ThreadPool pool(threads);
  Output out;
  out.values.resize(in.values.size());
  out.scales.resize(static_cast<std::size_t>(in.experts * blocks_of(in.rows, target.block_rows) *
                                             blocks_of(in.cols, target.block_cols)));
  out.sums = mxfp8_to_block({in.experts, in.rows, in.cols, in.values, in.scales}, target, pool,
                            out.scales, [&](std::int64_t first, auto values) {
                              std::ranges::copy(values, out.values.begin() + first);
                            });
  return out;
}

// The definition, an element at a time in fp32 and bf16.
Output one_by_one(const Input& in, const BlockTarget& target) {
  Output out{.values = in.values, .scales = {}, .sums = {}};
  const std::int64_t groups = (in.cols + 31) / 32;
  const auto value = [&](std::int64_t e, std::int64_t r, std::int64_t c) {
    const auto i = static_cast<std::size_t>((e * in.rows + r) * in.cols + c);
    const auto g = static_cast<std::size_t>((e * in.rows + r) * groups + c / 32);
    const float v = kE4m3fnValues[in.values[i]] * e8m0_to_float(in.scales[g]);
    return std::pair(i, bf16_to_float(float_to_bf16(v)));
  };
  for (std::int64_t e = 0; e < in.experts; ++e) {
    for (std::int64_t r0 = 0; r0 < in.rows; r0 += target.block_rows) {
      for (std::int64_t c0 = 0; c0 < in.cols; c0 += target.block_cols) {
        const auto each = [&](auto&& fn) {
          for (auto r = r0; r < std::min(in.rows, r0 + target.block_rows); ++r) {
            for (auto c = c0; c < std::min(in.cols, c0 + target.block_cols); ++c)
              fn(value(e, r, c));
          }
        };
        float amax = 0;
        each([&](auto at) {
          if (std::isfinite(at.second)) amax = std::max(amax, std::fabs(at.second));
        });
        const float scale = amax > 0 ? amax / 448.0f : 1e-10f / 448.0f;
        each([&](auto at) {
          const auto [i, v] = at;
          std::uint8_t q = float_to_e4m3fn(v / scale);
          // The sign of a NaN is its element's.
          if (std::isnan(v)) q = static_cast<std::uint8_t>(0x7F | (in.values[i] & 0x80));
          if (std::isfinite(v)) {
            const double d = double{kE4m3fnValues[q]} * scale - v;
            out.sums.difference_squares += d * d;
            out.sums.value_squares += double{v} * v;
          } else {
            ++out.sums.non_finite;
            const auto position = static_cast<std::int64_t>(i);
            if (out.sums.first_non_finite < 0 || position < out.sums.first_non_finite) {
              out.sums.first_non_finite = position;
            }
          }
          if (target.fnuz) q = q == 0x80 ? 0 : (q & 0x7F) == 0x7F ? 0x80 : q;
          out.values[i] = q;
        });
        out.scales.push_back(target.fnuz ? 2 * scale : scale);
      }
    }
  }
  return out;
}

// Gaussian values under the scale that lets none exceed 448.
Input gaussian(std::int64_t experts, std::int64_t rows, std::int64_t cols, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  Input in{.experts = experts, .rows = rows, .cols = cols, .values = {}, .scales = {}};
  for (std::int64_t row = 0; row < experts * rows; ++row) {
    for (std::int64_t c = 0; c < cols; c += 32) {
      std::vector<float> group(static_cast<std::size_t>(std::min<std::int64_t>(32, cols - c)));
      float amax = 0;
      for (float& x : group) amax = std::max(amax, std::fabs(x = normal(random)));
      const std::uint8_t scale = e8m0_ceil(amax, 448.0f);
      in.scales.push_back(scale);
      for (const float x : group) in.values.push_back(float_to_e4m3fn(x / e8m0_to_float(scale)));
    }
  }
  return in;
}

// Any bytes at all: NaNs, the smallest and the largest scales among them.
Input any_bytes(std::int64_t experts, std::int64_t rows, std::int64_t cols, std::uint32_t seed) {
  std::mt19937 random(seed);
  Input in{.experts = experts, .rows = rows, .cols = cols, .values = {}, .scales = {}};
  in.values.resize(static_cast<std::size_t>(experts * rows * cols));
  in.scales.resize(static_cast<std::size_t>(experts * rows * ((cols + 31) / 32)));
  for (auto& value : in.values) value = static_cast<std::uint8_t>(random());
  for (auto& scale : in.scales) scale = static_cast<std::uint8_t>(random());
  return in;
}

void expect_same(const Output& got, const Output& expected) {
  EXPECT_EQ(got.values, expected.values);
  EXPECT_EQ(got.scales, expected.scales);
  EXPECT_EQ(got.sums.non_finite, expected.sums.non_finite);
  EXPECT_EQ(got.sums.first_non_finite, expected.sums.first_non_finite);
  // With vectors a row's squares are summed in fp32.
  EXPECT_NEAR(got.sums.relative_error(), expected.sums.relative_error(),
              1e-7 * expected.sums.relative_error());
}

// Worked out by hand. Row 0 has scale 2^0, row 1 scale 2^-2 (code 125); all in one block.
//   row 0: 0x7E = 448, 0x38 = 1, 0xB8 = -1, 0x00, 0x80 = -0; row 1: 0x7E = 448/4 = 112,
//   0x38 = 0.25, 0xB9 = -1.125/4 = -0.28125, 0x01 = 2^-9/4 = 2^-11, 0x03 = 3 * 2^-11.
// amax 448, so s = 1 and q = E4M3(v): 112 = 1.75 * 2^6 is 0x6E (exponent 13, mantissa 6); 0.25 is
// 0x28; -0.28125 = -1.125 * 2^-2 is 0xA9. The grid below 2^-6 is 2^-9: 2^-11 is a quarter of a
// step: 0x00; 3 * 2^-11 three quarters: 0x01.
Input by_hand() {
  return {.experts = 1,
          .rows = 2,
          .cols = 5,
          .values = {0x7E, 0x38, 0xB8, 0x00, 0x80, 0x7E, 0x38, 0xB9, 0x01, 0x03},
          .scales = {127, 125}};
}

TEST(Mxfp8ToBlock, GivesTheBytesWorkedOutByHand) {
  const Output out = convert(by_hand(), {});
  EXPECT_THAT(out.values, ElementsAre(0x7E, 0x38, 0xB8, 0x00, 0x80, 0x6E, 0x28, 0xA9, 0x00, 0x01));
  EXPECT_THAT(out.scales, ElementsAre(1.0f));
  EXPECT_EQ(out.sums.non_finite, 0);
  // Only the last two differ, each by 2^-11.
  EXPECT_EQ(out.sums.difference_squares, 2 * std::pow(2.0, -22));
  EXPECT_EQ(out.sums.value_squares, 448.0 * 448 + 2 + 112 * 112 + 0.25 * 0.25 + 0.28125 * 0.28125 +
                                        10 * std::pow(2.0, -22));
}

TEST(Mxfp8ToBlock, KeepsTheByteAndDoublesTheScaleAsFnuz) {
  const Output out = convert(by_hand(), {.fnuz = true});
  EXPECT_THAT(out.values, ElementsAre(0x7E, 0x38, 0xB8, 0x00, 0x00, 0x6E, 0x28, 0xA9, 0x00, 0x01));
  EXPECT_THAT(out.scales, ElementsAre(2.0f));
}

TEST(Mxfp8ToBlock, EndsTheLastBlocksWithTheMatrix) {
  // 3 x 3 in blocks of 2 x 2, scale 2^0: the maxima 2, 4, 8, 16 give four scales.
  // 0x40 = 2, 0x48 = 4, 0x50 = 8, 0x58 = 16, 0x38 = 1.
  const Input in{.experts = 1,
                 .rows = 3,
                 .cols = 3,
                 .values = {0x40, 0x38, 0x48, 0x38, 0x38, 0x38, 0x50, 0x38, 0x58},
                 .scales = {127, 127, 127}};
  const Output out = convert(in, {.block_rows = 2, .block_cols = 2});
  EXPECT_THAT(out.scales, ElementsAre(2 / 448.0f, 4 / 448.0f, 8 / 448.0f, 16 / 448.0f));
  // A maximum becomes 448 = 0x7E; 1 under maximum 2^k becomes 448 / 2^k: 0x7E less 8 k.
  EXPECT_THAT(out.values, ElementsAre(0x7E, 0x76, 0x7E, 0x76, 0x76, 0x6E, 0x7E, 0x66, 0x7E));
}

TEST(Mxfp8ToBlock, EqualsTheDefinitionForEveryShapeAndBlock) {
  struct Shape {
    std::int64_t experts, rows, cols;
  };
  for (const Shape s : {Shape{1, 1, 1}, {2, 128, 128}, {3, 129, 33}, {1, 127, 257}, {2, 5, 100}}) {
    for (const auto& [rows, cols] : {std::pair(128, 128), {1, 32}, {64, 100}, {300, 7}}) {
      for (const bool fnuz : {false, true}) {
        const BlockTarget target{.block_rows = rows, .block_cols = cols, .fnuz = fnuz};
        const Input in = gaussian(s.experts, s.rows, s.cols, 1);
        expect_same(convert(in, target), one_by_one(in, target));
        const Input any = any_bytes(s.experts, s.rows, s.cols, 2);
        expect_same(convert(any, target), one_by_one(any, target));
      }
    }
  }
}

// Whole groups, which vectors convert where the processor has them; beyond the scales that those
// take, and where all is zero or a NaN is among it, counting does.
TEST(Mxfp8ToBlock, EqualsTheDefinitionUnderScalesNearAndFar) {
  for (const auto& [least, most] :
       {std::pair(100, 110), {20, 30}, {225, 235}, {24, 230}, {24, 24}, {230, 230}, {0, 255}}) {
    Input in = any_bytes(1, 256, 384, 7);
    std::mt19937 random(8);
    std::uniform_int_distribution<int> scale(least, most);
    for (auto& s : in.scales) s = static_cast<std::uint8_t>(scale(random));
    for (auto& v : in.values) v = (v & 0x7F) == 0x7F ? std::uint8_t{0x80} : v;
    for (std::size_t r = 0; r < 128; ++r) {  // a block of zeros, and one with subnormals alone
      for (std::size_t c = 128; c < 384; ++c) in.values[r * 384 + c] &= c < 256 ? 0x80 : 0x83;
    }
    in.values[200 * 384 + 5] = 0xFF;
    for (const bool fnuz : {false, true}) {
      for (const auto& [rows, cols] : {std::pair(128, 128), {100, 96}, {256, 384}, {1, 32}}) {
        const BlockTarget target{.block_rows = rows, .block_cols = cols, .fnuz = fnuz};
        expect_same(convert(in, target), one_by_one(in, target));
      }
    }
  }
}

TEST(Mxfp8ToBlock, LosesLessThanFivePercentOfGaussianData) {
  const Output out = convert(gaussian(2, 256, 512, 3), {});
  EXPECT_GT(out.sums.relative_error(), 0.001);
  EXPECT_LT(out.sums.relative_error(), 0.05);
}

TEST(Mxfp8ToBlock, GivesTheSameBitsForAnyNumberOfThreads) {
  const Input in = gaussian(3, 300, 200, 4);
  const Output one = convert(in, {}, 1), four = convert(in, {}, 4);
  EXPECT_EQ(one.values, four.values);
  EXPECT_EQ(one.scales, four.scales);
  EXPECT_EQ(one.sums.difference_squares, four.sums.difference_squares);
  EXPECT_EQ(one.sums.value_squares, four.sums.value_squares);
}

TEST(Mxfp8ToBlock, GivesZerosAFinitePositiveScale) {
  const Input in{.rows = 1, .cols = 3, .values = {0x00, 0x80, 0x00}, .scales = {127}};
  const Output ocp = convert(in, {}), fnuz = convert(in, {.fnuz = true});
  EXPECT_THAT(ocp.values, ElementsAre(0x00, 0x80, 0x00));
  EXPECT_THAT(ocp.scales, ElementsAre(1e-10f / 448));
  EXPECT_THAT(fnuz.values, ElementsAre(0x00, 0x00, 0x00));
  EXPECT_THAT(fnuz.scales, ElementsAre(2 * (1e-10f / 448)));
  EXPECT_EQ(ocp.sums.relative_error(), 0);
}

TEST(Mxfp8ToBlock, RoundsToBf16WhereProductsAreSubnormal) {
  // 2^-127 * 1.125 * 2^-6 = 9 * 2^-136: bf16 knows multiples of 2^-133 there, and 9/8 is 1.
  // 2^-127 * 2^-9 = 2^-136 is an eighth of a step: 0. So 2^-133 is the maximum and becomes 448.
  const Input in{.rows = 1, .cols = 2, .values = {0x09, 0x01}, .scales = {0}};
  const Output out = convert(in, {});
  EXPECT_EQ(out.values[1], 0x00);
  EXPECT_THAT(out.scales, ElementsAre(std::ldexp(1.0f, -133) / 448));
  EXPECT_EQ(out.values[0], 0x7E);
}

TEST(Mxfp8ToBlock, CountsAndLocatesWhatIsNotFinite) {
  Input in = gaussian(2, 130, 70, 5);
  in.values[static_cast<std::size_t>((1 * 130 + 129) * 70 + 69)] = 0xFF;  // NaN, last element
  in.scales[static_cast<std::size_t>((1 * 130 + 2) * 3 + 2)] = 255;       // NaN for columns 64..69
  const Output out = convert(in, {});
  EXPECT_EQ(out.sums.non_finite, 7);
  EXPECT_EQ(out.sums.first_non_finite, (130 + 2) * 70 + 64);
  EXPECT_EQ(out.values.back(), 0xFF);
  EXPECT_EQ(convert(in, {.fnuz = true}).values.back(), 0x80);
}

TEST(Mxfp8ToBlock, SaturatesProductsBeyondBf16) {
  // 448 * 2^127 overflows; 1 * 2^127 is the amax.
  const Input in{.rows = 1, .cols = 3, .values = {0xFE, 0x38, 0x7E}, .scales = {254}};
  const Output out = convert(in, {});
  EXPECT_THAT(out.values, ElementsAre(0xFE, 0x7E, 0x7E));
  EXPECT_THAT(out.scales, ElementsAre(std::ldexp(1.0f, 127) / 448));
  EXPECT_EQ(out.sums.non_finite, 2);
  EXPECT_EQ(out.sums.first_non_finite, 0);
}

TEST(Mxfp8ToBlock, PassesOnWhatTheSinkThrowsAndRefusesWrongSizes) {
  const Input in = gaussian(1, 4, 40, 6);
  ThreadPool pool(2);
  std::vector<float> scales(1);
  const MxTensor tensor{in.experts, in.rows, in.cols, in.values, in.scales};
  EXPECT_THROW(mxfp8_to_block(tensor, {}, pool, scales,
                              [](auto, auto) { throw std::runtime_error("full"); }),
               std::runtime_error);
  scales.resize(2);
  EXPECT_THROW(mxfp8_to_block(tensor, {}, pool, scales, [](auto, auto) {}), std::invalid_argument);
  scales.resize(1);
  EXPECT_THROW(mxfp8_to_block(tensor, {.block_rows = 0}, pool, scales, [](auto, auto) {}),
               std::invalid_argument);
}

TEST(Mxfp8ToBlock, ConvertsNothingToNothing) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  ThreadPool pool(1);
  EXPECT_EQ(mxfp8_to_block({huge, huge, 0, {}, {}}, {}, pool, {}, [](auto, auto) {}).non_finite, 0);
  for (const auto& [experts, rows, cols] :
       {std::tuple(0, 4, 4), std::tuple(4, 0, 4), std::tuple(4, 4, 0)}) {
    const Output out =
        convert({.experts = experts, .rows = rows, .cols = cols, .values = {}, .scales = {}}, {});
    EXPECT_TRUE(out.values.empty());
    EXPECT_EQ(out.sums.relative_error(), 0);
  }
}

}  // namespace
}  // namespace moegauge
