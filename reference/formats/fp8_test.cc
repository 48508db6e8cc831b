#include "reference/formats/fp8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "reference/formats/bf16.h"

namespace moegauge {
namespace {

// The formats by their definition, from bit fields, in double: (-1)^s 2^(e - bias) (1 + m/8), or
// (-1)^s 2^(1 - bias) (m/8) for e = 0.
struct Definition {
  int bias;
  double maximum;
  std::optional<double> decode(int code) const {
    const int s = code / 128, e = code / 8 % 16, m = code % 8;
    if (bias == 7 && e == 15 && m == 7) return std::nullopt;
    if (bias == 8 && code == 128) return std::nullopt;
    const double magnitude =
        e == 0 ? std::ldexp(m / 8.0, 1 - bias) : std::ldexp(1 + m / 8.0, e - bias);
    return s != 0 ? -magnitude : magnitude;
  }
  // The magnitude code nearest to |x|, searched among all; ties to the even code.
  int nearest_magnitude(double x) const {
    const double a = std::min(std::fabs(x), maximum);
    int best = 0;
    for (int code = 1; code < 128; ++code) {
      const auto value = decode(code);
      if (!value || *value > maximum) continue;
      const double d = std::fabs(a - *value), b = std::fabs(a - *decode(best));
      if (d < b || (d == b && code % 2 == 0)) best = code;
    }
    return best;
  }
};
constexpr Definition kOcp = {7, 448};
constexpr Definition kFnuz = {8, 240};
constexpr Definition kFnuzReduced = {8, 224};

int expected_ocp(float x) {
  const int sign = std::signbit(x) ? 128 : 0;
  return std::isnan(x) ? sign + 127 : sign + kOcp.nearest_magnitude(x);
}
int expected_fnuz(float x, const Definition& d) {
  if (std::isnan(x)) return 128;
  const int code = d.nearest_magnitude(x);
  return code == 0 ? 0 : code + (std::signbit(x) ? 128 : 0);
}

// Every bf16 value, and all midpoints of neighbouring codes with their float neighbours.
std::vector<float> interesting_values(const Definition& d) {
  std::vector<float> values;
  for (int bits = 0; bits < 65536; ++bits) {
    values.push_back(bf16_to_float(static_cast<std::uint16_t>(bits)));
  }
  for (int code = 0; code < 127; ++code) {
    if (!d.decode(code) || !d.decode(code + 1)) continue;
    const auto middle = static_cast<float>((*d.decode(code) + *d.decode(code + 1)) / 2);
    for (const float v : {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, 1e9f)}) {
      values.push_back(v);
      values.push_back(-v);
    }
  }
  return values;
}

TEST(Fp8, EveryOcpCodeDecodesToItsDefinition) {
  for (int code = 0; code < 256; ++code) {
    const float value = e4m3fn_to_float(static_cast<std::uint8_t>(code));
    const auto expected = kOcp.decode(code);
    if (!expected) {
      EXPECT_TRUE(std::isnan(value)) << code;
      continue;
    }
    EXPECT_EQ(value, *expected) << code;
    EXPECT_EQ(std::signbit(value), code >= 128) << code;
    EXPECT_EQ(kE4m3fnValues[static_cast<std::size_t>(code)], value);
  }
}

TEST(Fp8, EveryFnuzCodeDecodesToItsDefinition) {
  for (int code = 0; code < 256; ++code) {
    const float value = e4m3fnuz_to_float(static_cast<std::uint8_t>(code));
    const auto expected = kFnuz.decode(code);
    if (!expected) {
      EXPECT_TRUE(std::isnan(value)) << code;
      continue;
    }
    EXPECT_EQ(value, *expected) << code;
    EXPECT_EQ(kE4m3fnuzValues[static_cast<std::size_t>(code)], value);
  }
}

TEST(Fp8, LandmarksOfTheSpecifications) {
  EXPECT_EQ(e4m3fn_to_float(0x7E), 448.0f);
  EXPECT_EQ(e4m3fn_to_float(0x08), 0x1p-6f);  // smallest normal
  EXPECT_EQ(e4m3fn_to_float(0x01), 0x1p-9f);  // smallest subnormal
  EXPECT_TRUE(std::isnan(e4m3fn_to_float(0x7F)));
  EXPECT_TRUE(std::isnan(e4m3fn_to_float(0xFF)));
  EXPECT_EQ(e4m3fnuz_to_float(0x7F), 240.0f);
  EXPECT_EQ(e4m3fnuz_to_float(0x08), 0x1p-7f);
  EXPECT_EQ(e4m3fnuz_to_float(0x01), 0x1p-10f);
  EXPECT_TRUE(std::isnan(e4m3fnuz_to_float(0x80)));
}

TEST(Fp8, OcpEncodingIsTheNearestCodeForEveryBf16AndAroundEveryMidpoint) {
  for (const float x : interesting_values(kOcp)) {
    ASSERT_EQ(float_to_e4m3fn(x), expected_ocp(x)) << x;
  }
}

TEST(Fp8, FnuzEncodingIsTheNearestCodeUnderBothMaxima) {
  for (const float x : interesting_values(kFnuz)) {
    ASSERT_EQ(float_to_e4m3fnuz(x), expected_fnuz(x, kFnuz)) << x;
    ASSERT_EQ(float_to_e4m3fnuz(x, kE4m3fnuzReducedMax), expected_fnuz(x, kFnuzReduced)) << x;
  }
}

TEST(Fp8, InfinitySaturatesAndNanStays) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(float_to_e4m3fn(inf), 0x7E);
  EXPECT_EQ(float_to_e4m3fn(-inf), 0xFE);
  EXPECT_EQ(float_to_e4m3fn(1e30f), 0x7E);
  EXPECT_EQ(float_to_e4m3fn(nan), 0x7F);
  EXPECT_EQ(float_to_e4m3fn(-nan), 0xFF);
  EXPECT_EQ(float_to_e4m3fn(-0.0f), 0x80);
  EXPECT_EQ(float_to_e4m3fnuz(inf), 0x7F);
  EXPECT_EQ(float_to_e4m3fnuz(-inf), 0xFF);
  EXPECT_EQ(float_to_e4m3fnuz(inf, 224.0f), 0x7E);  // 224 = 1.75 * 2^7: e = 15, m = 6
  EXPECT_EQ(float_to_e4m3fnuz(nan), 0x80);
  EXPECT_EQ(float_to_e4m3fnuz(-0.0f), 0x00);
  EXPECT_EQ(float_to_e4m3fnuz(-0x1p-12f), 0x00);
}

TEST(Fp8, AnOcpByteReadAsFnuzIsHalfItsValue) {
  for (int code = 0; code < 256; ++code) {
    const std::uint8_t fnuz = e4m3fn_to_e4m3fnuz_halved(static_cast<std::uint8_t>(code));
    const auto ocp = kOcp.decode(code);
    if (!ocp) {
      EXPECT_EQ(fnuz, 0x80) << code;
    } else {
      EXPECT_EQ(*kFnuz.decode(fnuz) * 2, *ocp) << code;
      EXPECT_EQ(fnuz, code == 0x80 ? 0 : code);
    }
  }
}

static_assert(float_to_e4m3fn(1.0f) == 0x38, "usable in constant expressions");

}  // namespace
}  // namespace moegauge
