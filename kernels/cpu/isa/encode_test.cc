// Every level's quantisation of rows: scales by rule, codes as the scalar formats round, and what
// is gathered and summed of quantised rows.
#include <cmath>
#include <limits>

#include "kernels/cpu/isa/level_testing.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int8.h"

namespace moegauge::cpu {
namespace {

class EncodeTest : public LevelTest {};
INSTANTIATE_TEST_SUITE_P(Levels, EncodeTest, testing::ValuesIn(supported_levels()), level_name);

TEST_P(EncodeTest, QuantisesGroupsByTheirLargestFiniteMagnitude) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const DotUnit unit = table().dot_unit(ActivationCodec::e4m3fn);
  // Groups of 32: amax 896; zeros; a NaN and an infinity beside 448; denormals; a short group.
  std::vector<float> in(4 * 32 + 5);
  in[0] = -896, in[1] = 2, in[2] = 1.0625f;  // 1.0625 / 2 = 0.53125, a tie: to even, 0.5
  in[64] = std::numeric_limits<float>::quiet_NaN(), in[65] = kInfinity, in[66] = 448, in[67] = 1;
  in[96] = 1e-40f;
  in[128] = 4.48f;
  std::vector<float> steps(160), scales(5);
  table().encode({.in = in.data(),
                  .elements = 133,
                  .padded = 160,
                  .codec = ActivationCodec::e4m3fn,
                  .unit = unit,
                  .scaling = {.rule = ScalingRule::amax, .maximum = 448, .amax_floor = 1e-10f},
                  .group = 32,
                  .out = steps.data(),
                  .scales = scales.data()});
  std::vector<float> values(160);
  if (unit == DotUnit::fp32) {
    values = steps;
  } else {
    table().widen(NarrowType::bf16, reinterpret_cast<const std::uint16_t*>(steps.data()), 160,
                  values.data());
  }
  EXPECT_EQ(scales, (std::vector<float>{2, 1e-10f / 448, 1, 1e-10f / 448, 4.48f / 448}));
  EXPECT_EQ(values[0], -448);
  EXPECT_EQ(values[1], 1);
  EXPECT_EQ(values[2], 0.5f);
  EXPECT_TRUE(std::isnan(values[64]));
  EXPECT_EQ(values[65], 448);
  EXPECT_EQ(values[66], 448);
  EXPECT_EQ(values[67], 1);
  EXPECT_EQ(values[96], 0);  // 1e-40 / 2.2e-13 is far below half the smallest code
  EXPECT_EQ(values[128], 448);
  for (std::size_t i = 129; i < 160; ++i) EXPECT_EQ(values[i], 0) << i;
}

TEST_P(EncodeTest, GivesGroupsTheirScaleByTheRuleAsked) {
  const auto scale = [&](const Scaling& s, float amax) { return table().scale_of(s, amax); };
  // By hand: 896 / 448; the floor under amax; the floor under the scale itself.
  const Scaling floored = {.rule = ScalingRule::amax, .maximum = 448, .amax_floor = 1e-10f};
  EXPECT_EQ(scale(floored, 896), 2);
  EXPECT_EQ(scale(floored, 0), 1e-10f / 448);
  const Scaling bounded = {
      .rule = ScalingRule::amax, .maximum = 448, .scale_floor = 1.0f / (448 * 512)};
  EXPECT_EQ(scale(bounded, 896), 2);
  EXPECT_EQ(scale(bounded, 1e-3f), 1.0f / (448 * 512));
  EXPECT_EQ(scale({.rule = ScalingRule::given, .given = 0.3f}, 896), 0.3f);
  // Against the scalar format, on every power of two, its neighbours and 448 times them.
  for (int exponent = -149; exponent < 128; ++exponent) {
    for (const float factor : {1.0f, 1.75f, 448.0f / 256}) {
      const float middle = std::ldexp(factor, exponent);
      for (const float amax :
           {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e38f)}) {
        if (!std::isfinite(amax)) continue;
        for (const float maximum : {448.0f, 240.0f, 6.0f}) {
          ASSERT_EQ(scale({.rule = ScalingRule::power_of_two_ceil, .maximum = maximum}, amax),
                    e8m0_to_float(e8m0_ceil(amax, maximum)))
              << amax;
        }
        ASSERT_EQ(scale({.rule = ScalingRule::power_of_two_floor, .maximum = 448}, amax),
                  e8m0_to_float(e8m0_floor(amax, 0)))
            << amax;
      }
    }
  }
}

TEST_P(EncodeTest, RoundsToInt8AndFnuzAsTheScalarFormatsDo) {
  const std::vector<float> in = interesting_floats();
  const auto n = static_cast<std::int64_t>(in.size());
  const auto encoded = [&](ActivationCodec codec, float maximum) {
    const DotUnit unit = table().dot_unit(codec);
    std::vector<float> steps(in.size() + 32), values(in.size());
    table().encode({.in = in.data(),
                    .elements = n,
                    .padded = n,
                    .codec = codec,
                    .unit = unit,
                    .scaling = {.maximum = maximum},
                    .out = steps.data()});
    if (unit == DotUnit::fp32) return steps;
    table().widen(NarrowType::bf16, reinterpret_cast<const std::uint16_t*>(steps.data()), n,
                  values.data());
    return values;
  };
  const std::vector<float> int8 = encoded(ActivationCodec::int8, 127);
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(int8[i], float_to_int8(in[i])) << in[i];
  for (const float maximum : {kE4m3fnuzMax, kE4m3fnuzReducedMax}) {
    const std::vector<float> fnuz = encoded(ActivationCodec::e4m3fnuz, maximum);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float expected = e4m3fnuz_to_float(float_to_e4m3fnuz(in[i], maximum));
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(fnuz[i])) << in[i];
      } else {
        ASSERT_EQ(fnuz[i], expected) << in[i];
      }
    }
  }
}

TEST_P(EncodeTest, GivesAnInt8GroupWithANanAScaleThatIsOne) {
  std::vector<float> in(64, 2.0f), steps(64), scales(2);
  in[40] = std::numeric_limits<float>::quiet_NaN();
  table().encode({.in = in.data(),
                  .elements = 64,
                  .padded = 64,
                  .codec = ActivationCodec::int8,
                  .unit = table().dot_unit(ActivationCodec::int8),
                  .scaling = {.rule = ScalingRule::amax, .maximum = 127, .amax_floor = 1e-10f},
                  .group = 32,
                  .out = steps.data(),
                  .scales = scales.data()});
  EXPECT_EQ(scales[0], 2.0f / 127);
  EXPECT_TRUE(std::isnan(scales[1]));
}

TEST_P(EncodeTest, GathersAndSumsElementsOfARow) {
  for (const ActivationCodec codec : {ActivationCodec::bf16, ActivationCodec::fp16}) {
    const DotUnit unit = table().dot_unit(codec);
    std::vector<float> in(32), steps(32), gathered(32), sums(2);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
    table().encode({.in = in.data(),
                    .elements = 32,
                    .padded = 32,
                    .codec = codec,
                    .unit = unit,
                    .out = steps.data()});
    std::vector<std::int32_t> from(32, -1);
    from[0] = 31, from[1] = 5, from[16] = 5, from[31] = 7;
    table().gather_steps(unit, steps.data(), from.data(), 32, gathered.data());
    table().sum_groups(unit, gathered.data(), 32, 16, sums.data());
    EXPECT_EQ(sums, (std::vector<float>{36, 12}));
    table().sum_groups(unit, steps.data(), 32, 32, sums.data());
    EXPECT_EQ(sums[0], 31 * 32 / 2);
  }
}

}  // namespace
}  // namespace moegauge::cpu
