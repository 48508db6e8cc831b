#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"

namespace moegauge {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// A 16-bit IEEE format by its definition.
struct Definition {
  int exponent_bits, mantissa_bits;
  double decode(int code) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int mantissas = 1 << mantissa_bits;
    const int e = (code & 0x7FFF) >> mantissa_bits, m = code & (mantissas - 1);
    double v =
        std::ldexp(static_cast<double>(m) / mantissas + (e == 0 ? 0 : 1), std::max(e, 1) - bias);
    if (e == (1 << exponent_bits) - 1) v = m != 0 ? std::nan("") : static_cast<double>(kInf);
    return (code & 0x8000) != 0 ? -v : v;
  }
};
constexpr Definition kBf16 = {8, 7};
constexpr Definition kFp16 = {5, 10};

TEST(Bf16, EveryCodeDecodesToItsDefinitionAndEncodesBackToItself) {
  for (int code = 0; code < 65536; ++code) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(code));
    const double expected = kBf16.decode(code);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(float_to_bf16(value), code | 0x40);  // made quiet
    } else {
      ASSERT_EQ(value, expected);
      ASSERT_EQ(float_to_bf16(value), code);
      ASSERT_EQ(double_to_bf16(expected), code);
    }
  }
}

TEST(Fp16, EveryCodeDecodesToItsDefinitionAndEncodesBackToItself) {
  for (int code = 0; code < 65536; ++code) {
    const float value = fp16_to_float(static_cast<std::uint16_t>(code));
    const double expected = kFp16.decode(code);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(float_to_fp16(value), code | 0x200);
    } else {
      ASSERT_EQ(value, expected);
      ASSERT_EQ(std::signbit(value), code >= 0x8000);
      ASSERT_EQ(float_to_fp16(value), code);
      ASSERT_EQ(double_to_fp16(expected), code);
    }
  }
}

// Between neighbouring codes c and c + 1 the midpoint goes to the even code, and the nearest
// floats (doubles) on either side of it to their own side. After the largest finite code the next
// "code" is infinity, whose place is the next power of two.
template <typename Encode, typename EncodeDouble>
void expect_round_to_nearest_even(const Definition& format, int largest, Encode encode,
                                  EncodeDouble encode_double) {
  for (int code = 0; code <= largest; ++code) {
    const double low = format.decode(code);
    const double step =
        code == largest ? low - format.decode(code - 1) : format.decode(code + 1) - low;
    const double middle = low + step / 2;
    const int even = code % 2 == 0 ? code : code + 1;
    ASSERT_EQ(encode_double(middle), even) << middle;
    ASSERT_EQ(encode_double(std::nextafter(middle, 0.0)), code) << middle;
    ASSERT_EQ(encode_double(std::nextafter(middle, 1e300)), code + 1) << middle;
    ASSERT_EQ(encode_double(-middle), even | 0x8000) << middle;
    const auto f = static_cast<float>(middle);
    ASSERT_EQ(f, middle) << "midpoints are floats";
    ASSERT_EQ(encode(f), even) << middle;
    ASSERT_EQ(encode(-f), even | 0x8000) << middle;
    ASSERT_EQ(encode(std::nextafter(f, 0.0f)), code) << middle;
    ASSERT_EQ(encode(std::nextafter(f, kInf)), code + 1) << middle;
  }
}

TEST(Bf16, RoundsToNearestEvenFromFloatAndFromDouble) {
  expect_round_to_nearest_even(kBf16, 0x7F7F, float_to_bf16, double_to_bf16);
}

TEST(Fp16, RoundsToNearestEvenFromFloatAndFromDouble) {
  expect_round_to_nearest_even(kFp16, 0x7BFF, float_to_fp16, double_to_fp16);
}

TEST(Half, OverflowGivesInfinityAndNanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float signalling = std::bit_cast<float>(0x7F80'0001u);  // payload only in the lost bits
  EXPECT_EQ(float_to_bf16(kInf), 0x7F80);
  EXPECT_EQ(float_to_bf16(-kInf), 0xFF80);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(signalling))));
  EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(signalling))));
  EXPECT_EQ(float_to_fp16(kInf), 0x7C00);
  EXPECT_EQ(float_to_fp16(65519.0f), 0x7BFF);
  EXPECT_EQ(float_to_fp16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_fp16(-1e30f), 0xFC00);
  EXPECT_TRUE(std::isnan(fp16_to_float(float_to_fp16(nan))));
  EXPECT_EQ(double_to_bf16(1e300), 0x7F80);
  EXPECT_EQ(double_to_fp16(-1e300), 0xFC00);
  EXPECT_EQ(double_to_bf16(1e-300), 0);
  EXPECT_EQ(double_to_bf16(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(bf16_to_float(double_to_bf16(std::nan("")))));
}

TEST(Half, FromDoubleThereIsOneRoundingOnly) {
  // 1 + 2^-8 + 2^-40: float rounding gives the midpoint 1 + 2^-8, which a second rounding would
  // take down to 1.
  EXPECT_EQ(double_to_bf16(1.0 + 0x1p-8 + 0x1p-40), 0x3F81);
  EXPECT_EQ(double_to_fp16(1.0 + 0x1p-11 + 0x1p-40), 0x3C01);
  EXPECT_EQ(double_to_fp16(0x1p-25 + 0x1p-70), 0x0001);  // half the smallest subnormal, and more
}

}  // namespace
}  // namespace moegauge
