#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/int4.h"
#include "reference/formats/int8.h"

namespace moegauge {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(E8m0, EveryCodeIsItsPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(e8m0_to_float(static_cast<std::uint8_t>(code)), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
}

// The smallest power of two, from 2^-127 to 2^127, under which amax / 2^k <= maximum, by trying
// all.
int smallest_code_that_fits(double amax, double maximum) {
  for (int code = 0; code < 254; ++code) {
    if (amax <= std::ldexp(maximum, code - 127)) return code;
  }
  return 254;
}

TEST(E8m0, CeilIsTheSmallestScaleThatKeepsEveryElementInRange) {
  for (int bits = 0; bits < 0x7F80; ++bits) {  // every finite bf16, and its neighbours as float
    const float x = bf16_to_float(static_cast<std::uint16_t>(bits));
    for (const float amax : {x, std::nextafter(x, kInf), std::nextafter(x, 0.0f)}) {
      ASSERT_EQ(e8m0_ceil(amax, 448.0f), smallest_code_that_fits(amax, 448)) << amax;
      ASSERT_EQ(e8m0_ceil(amax, 6.0f), smallest_code_that_fits(amax, 6)) << amax;
    }
  }
}

TEST(E8m0, FloorIsTheExponentOfTheMaximum) {
  for (int bits = 1; bits < 0x7F80; ++bits) {
    const float amax = bf16_to_float(static_cast<std::uint16_t>(bits));
    const int exponent = std::ilogb(amax);
    ASSERT_EQ(e8m0_floor(amax, 0), std::max(exponent, -127) + 127) << amax;
    ASSERT_EQ(e8m0_floor(amax, 8), std::max(exponent - 8, -127) + 127) << amax;
  }
}

TEST(E8m0, ZeroInfinityAndNan) {
  EXPECT_EQ(e8m0_ceil(0.0f, 448.0f), 0);
  EXPECT_EQ(e8m0_floor(0.0f, 0), 0);
  EXPECT_EQ(e8m0_ceil(kInf, 448.0f), 128 - 8 + 127);  // as 2^128, the next value after the largest
  EXPECT_EQ(e8m0_floor(kInf, 0), 254);
  EXPECT_EQ(e8m0_ceil(kNan, 448.0f), 255);
  EXPECT_EQ(e8m0_floor(kNan, 0), 255);
}

TEST(E2m1, EveryCodeDecodesToItsDefinition) {
  for (int code = 0; code < 16; ++code) {
    const int e = code / 2 % 4, m = code % 2;
    const double magnitude = e == 0 ? m / 2.0 : std::ldexp(1 + m / 2.0, e - 1);
    const float value = e2m1_to_float(static_cast<std::uint8_t>(code));
    EXPECT_EQ(std::fabs(value), magnitude) << code;
    EXPECT_EQ(std::signbit(value), code >= 8) << code;
  }
}

TEST(E2m1, EncodingIsTheNearestCodeWithTiesToEven) {
  const auto nearest = [](double x) {
    int best = 0;
    for (int code = 1; code < 8; ++code) {
      const double d =
          std::fabs(std::fabs(x) - std::fabs(kE2m1Values[static_cast<std::size_t>(code)]));
      const double b =
          std::fabs(std::fabs(x) - std::fabs(kE2m1Values[static_cast<std::size_t>(best)]));
      if (d < b || (d == b && code % 2 == 0)) best = code;
    }
    return best + (std::signbit(x) ? 8 : 0);
  };
  for (int eighths = -80; eighths <= 80; ++eighths) {
    const float x = static_cast<float>(eighths) / 8;  // all codes and all midpoints are among them
    for (const float v : {x, std::nextafter(x, kInf), std::nextafter(x, -kInf)}) {
      EXPECT_EQ(float_to_e2m1(v), nearest(v)) << v;
    }
  }
  EXPECT_EQ(float_to_e2m1(-0.0f), 8);
  EXPECT_EQ(float_to_e2m1(kInf), 7);
  EXPECT_EQ(float_to_e2m1(-kInf), 15);
  EXPECT_EQ(float_to_e2m1(kNan) & 7, 7);
}

TEST(Int8, RoundsToEvenAndClamps) {
  EXPECT_EQ(float_to_int8(0.5f), 0);
  EXPECT_EQ(float_to_int8(1.5f), 2);
  EXPECT_EQ(float_to_int8(-2.5f), -2);
  EXPECT_EQ(float_to_int8(-3.5f), -4);
  EXPECT_EQ(float_to_int8(std::nextafter(2.5f, 3.0f)), 3);
  EXPECT_EQ(float_to_int8(127.4f), 127);
  EXPECT_EQ(float_to_int8(1e30f), 127);
  EXPECT_EQ(float_to_int8(-kInf), -127);
  EXPECT_EQ(float_to_int8(-kInf, -128), -128);
  EXPECT_EQ(float_to_int8(kNan), 0);
}

TEST(Int4, NibblesGoLowFirst) {
  EXPECT_EQ(pack_nibbles(0x3, 0xA), 0xA3);
  EXPECT_EQ(pack_nibbles(-1, -8), 0x8F);
  EXPECT_EQ(nibble(0xA3, 0), 0x3);
  EXPECT_EQ(nibble(0xA3, 1), 0xA);
  const int as_signed[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
  for (int v = 0; v < 16; ++v) {
    EXPECT_EQ(signed_nibble(v), as_signed[v]);
    EXPECT_EQ(offset_nibble(v), v - 8);
  }
}

TEST(Int4, WordOrders) {
  EXPECT_EQ(word_nibble(0x76543210u, 5), 5);
  // AWQ: elements 0 .. 7 land in the word, lowest nibble first, as 0 2 4 6 1 3 5 7.
  const std::uint32_t awq = 0x75316420u;
  for (int element = 0; element < 8; ++element) EXPECT_EQ(awq_nibble(awq, element), element);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(word_nibble(awq, i), kAwqOrder[static_cast<std::size_t>(i)]);
  }
}

TEST(Int4, RoundsToEvenAndClamps) {
  EXPECT_EQ(float_to_int4(2.5f), 2);
  EXPECT_EQ(float_to_int4(3.5f), 4);
  EXPECT_EQ(float_to_int4(9.0f), 7);
  EXPECT_EQ(float_to_int4(-9.0f), -8);
  EXPECT_EQ(float_to_int4(-9.0f, -7), -7);
  EXPECT_EQ(float_to_int4(kNan), 0);
}

}  // namespace
}  // namespace moegauge
