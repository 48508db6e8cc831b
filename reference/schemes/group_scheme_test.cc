// 16-bit, group-quantised integer and MXFP4 schemes: storage worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/schemes/scheme_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Bytes = std::vector<std::uint8_t>;
using Bits = std::vector<std::uint16_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(HalfSchemes, HoldWeightsAndActivationsInTheirOwnType) {
  const auto bf16 = make_scheme("bf16"), fp16 = make_scheme("fp16");
  EXPECT_EQ(bf16->traits().only, Dtype::bf16);
  EXPECT_EQ(fp16->traits().only, Dtype::fp16);
  const Floats w = {1, -0.5f, 3};
  const auto a = quantize(*bf16, {Role::w2, 1, 3}, w);
  const auto b = quantize(*fp16, {Role::w2, 1, 3, Dtype::fp16}, w);
  EXPECT_EQ(read_as<std::uint16_t>(std::as_const(a).view().values), (Bits{0x3F80, 0xBF00, 0x4040}));
  EXPECT_EQ(read_as<std::uint16_t>(std::as_const(b).view().values), (Bits{0x3C00, 0xB800, 0x4200}));
  // 1 + 2^-8 lies in the middle of two bf16 numbers and is an fp16 number.
  EXPECT_EQ(emulate(*bf16, {1 + 0x1p-8f}, {.rows = 1, .cols = 1}), Doubles{1});
  EXPECT_EQ(emulate(*fp16, {1 + 0x1p-8f}, {.rows = 1, .cols = 1, .dtype = Dtype::fp16}),
            Doubles{1 + 0x1p-8});
}

TEST(W4A16, PacksEvenColumnsIntoLowNibblesWithAnOffsetOfEight) {
  const auto scheme = make_scheme("w4a16_g32");
  const auto storage = quantize(*scheme, {Role::w2, 2, 3}, {7, -7, 1, 14, -2, 0.9f});
  const ConstMatrix m = std::as_const(storage).view();
  // Row 0, scale 1: 7, -7, 1 are the codes 15, 1, 9. Row 1, scale 2: 7, -1, 0.45 are 15, 7, 8.
  EXPECT_EQ(read_as<std::uint8_t>(m.values), (Bytes{0x1F, 0x09, 0x7F, 0x08}));
  EXPECT_EQ(read_as<std::uint16_t>(m.scales), (Bits{0x3F80, 0x4000}));
  EXPECT_EQ(dequantize(*scheme, storage), (Doubles{7, -7, 1, 14, -2, 0}));
}

TEST(W4A16, KeepsScalesInTheActivationDtype) {
  // 10 / 7 = 1.428571: nearest bf16 1.4296875, nearest fp16 1.4287109375.
  const auto scheme = make_scheme("w4a16");
  EXPECT_EQ(dequantize(*scheme, quantize(*scheme, {Role::w2, 1, 1, Dtype::bf16}, {10}))[0],
            7 * 1.4296875);
  EXPECT_EQ(dequantize(*scheme, quantize(*scheme, {Role::w2, 1, 1, Dtype::fp16}, {10}))[0],
            7 * 1.4287109375);
}

TEST(W4A16, LeavesActivationsInTheActivationDtype) {
  const auto scheme = make_scheme("w4a16");
  EXPECT_EQ(emulate(*scheme, {1 + 0x1p-8f}, {.rows = 1, .cols = 1, .dtype = Dtype::bf16}),
            Doubles{1});
  EXPECT_EQ(emulate(*scheme, {1 + 0x1p-8f}, {.rows = 1, .cols = 1, .dtype = Dtype::fp16}),
            Doubles{1 + 0x1p-8});
}

TEST(W4A16, GivesEachRunOfAGroupItsScaleAlsoTheRaggedLast) {
  const auto scheme = make_scheme("w4a16_g32");
  Floats w(70, 0.0f);
  w[31] = 7;
  w[32] = 14;
  w[69] = -28;  // the last group has 6 columns
  const auto storage = quantize(*scheme, {Role::w2, 1, 70}, w);
  EXPECT_EQ(read_as<std::uint16_t>(std::as_const(storage).view().scales),
            (Bits{0x3F80, 0x4000, 0x4080}));  // 1, 2, 4
  const auto back = dequantize(*scheme, storage);
  EXPECT_EQ(back, Doubles(w.begin(), w.end()));
}

TEST(W4A16, ZeroPointsShiftAGroupOfOneSignAcrossAllCodes) {
  const auto scheme = make_scheme("w4a16_g32_zp");
  // Row 0: -3 .. 12, scale 1, zero 3. Row 1: 0 .. 30, scale 2, zero 0. Row 2: -15 .. 0, zero 15.
  const auto storage = quantize(*scheme, {Role::w2, 3, 2}, {-3, 12, 30, 4, -15, -1});
  const ConstMatrix m = std::as_const(storage).view();
  EXPECT_EQ(read_as<std::uint16_t>(m.scales), (Bits{0x3F80, 0x4000, 0x3F80}));
  EXPECT_EQ(read_as<std::uint8_t>(m.zero_points), (Bytes{0x03, 0x0F}));  // low nibble = even row
  EXPECT_EQ(read_as<std::uint8_t>(m.values), (Bytes{0xF0, 0x2F, 0xE0}));
  EXPECT_EQ(dequantize(*scheme, storage), (Doubles{-3, 12, 30, 4, -15, -1}));
}

TEST(W8A16, StoresBytesWithAnOffsetOf128OrAZeroPoint) {
  const auto symmetric = make_scheme("w8a16");
  const auto a = quantize(*symmetric, {Role::w2, 1, 3}, {127, -127, 1});
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(a).view().values), (Bytes{255, 1, 129}));
  const auto asymmetric = make_scheme("w8a16_zp");
  const auto b = quantize(*asymmetric, {Role::w2, 1, 3}, {-55, 200, 1});
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(b).view().zero_points), Bytes{55});
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(b).view().values), (Bytes{0, 255, 56}));
}

TEST(ActOrder, GroupsColumnsByFallingEnergyAndSaysSoInTheGroupIndex) {
  const auto scheme = make_scheme("w4a16_g32_actorder");
  Floats w(40);
  for (std::size_t c = 0; c < 40; ++c) w[c] = c % 5 == 0 ? 7.0f : 0.5f;  // 8 strong columns
  const auto storage = quantize(*scheme, {Role::w2, 1, 40}, w);
  const auto group_index = read_as<std::int32_t>(std::as_const(storage).view().group_index);
  // The 8 strong columns and the first 24 weak ones are group 0; the last 8 weak ones group 1.
  int weak = 0;
  for (std::size_t c = 0; c < 40; ++c) {
    EXPECT_EQ(group_index[c], c % 5 == 0 || ++weak <= 24 ? 0 : 1) << c;
  }
  const auto back = dequantize(*scheme, storage);
  EXPECT_EQ(back[0], 7);
  EXPECT_EQ(back[1], 0);                   // half a step of group 0 ties to zero
  EXPECT_EQ(back[39], 7 * 0.07128906250);  // group 1: 0.5 / 7 = 0.0714286 in bf16
}

// 4 columns of a rank out of 128, in groups of 32: of falling energy they are columns 2, 0, 3, 1,
// and each of the whole's 4 groups gets one.
TEST(ActOrder, SpreadsTheColumnsOfARankOverTheGroupsOfTheWhole) {
  const auto scheme = make_scheme("w8a16_g32_actorder");
  const auto storage =
      quantize(*scheme, {.role = Role::w2, .rows = 1, .cols = 4, .whole_cols = 128}, {4, 1, 8, 2});
  const ConstMatrix m = std::as_const(storage).view();
  EXPECT_EQ(read_as<std::int32_t>(m.group_index), (std::vector<std::int32_t>{1, 3, 0, 2}));
  EXPECT_EQ(m.scales.size(), 4 * sizeof(std::uint16_t));
  EXPECT_EQ(read_as<std::uint8_t>(m.values), (Bytes{255, 255, 255, 255}));  // each its own largest
}

TEST(ActOrder, ReadsScalesThroughTheGroupIndex) {
  const auto scheme = make_scheme("w8a16_g32_actorder");
  // Columns 0..3 belong to groups 2, 0, 1, 2 of a wider matrix cut by tensor parallelism.
  const Bytes values = {129, 130, 131, 126};
  const Bits scales = {0x3F80, 0x4000, 0x4080};  // 1, 2, 4
  const std::vector<std::int32_t> group_index = {2, 0, 1, 2};
  const ConstMatrix m = {.shape = {Role::w2, 1, 4},
                         .values = std::as_bytes(std::span(values)),
                         .scales = std::as_bytes(std::span(scales)),
                         .group_index = std::as_bytes(std::span(group_index))};
  Doubles out(4);
  scheme->dequantize_weight(m, 0, 1, out);
  EXPECT_EQ(out, (Doubles{1 * 4, 2 * 1, 3 * 2, -2 * 4}));
}

TEST(IntegerSchemes, HaveNoNanAndSaturateInfinities) {
  const auto scheme = make_scheme("w4a16_g32");
  const float inf = std::numeric_limits<float>::infinity();
  const auto storage = quantize(*scheme, {Role::w2, 1, 4}, {7, std::nanf(""), inf, -inf});
  EXPECT_EQ(dequantize(*scheme, storage), (Doubles{7, 0, 7, -8}));
}

TEST(Mxfp4, PacksE2M1WithAPowerOfTwoPer32) {
  const auto scheme = make_scheme("mxfp4");
  Floats w(33, 0.0f);
  w[0] = 6;
  w[1] = -0.5f;
  w[2] = 2.5f;   // between 2 and 3: ties to the even mantissa, 2
  w[32] = 6.5f;  // above 6: scale 2, 3.25 rounds to 3
  const auto storage = quantize(*scheme, {Role::w2, 1, 33}, w);
  const ConstMatrix m = std::as_const(storage).view();
  EXPECT_EQ(read_as<std::uint8_t>(m.scales), (Bytes{127, 128}));
  const auto values = read_as<std::uint8_t>(m.values);
  EXPECT_EQ(values[0], 0x97);  // 6 is 7, -0.5 is 9
  EXPECT_EQ(values[1], 0x04);
  EXPECT_EQ(values[16], 0x05);
  const auto back = dequantize(*scheme, storage);
  EXPECT_EQ(back[2], 2);
  EXPECT_EQ(back[32], 6);
}

TEST(Mxfp4, CarriesANanInTheScaleOfItsGroup) {
  const auto scheme = make_scheme("mxfp4");
  Floats w(64, 1.0f);
  w[40] = std::nanf("");
  const auto back = dequantize(*scheme, quantize(*scheme, {Role::w2, 1, 64}, w));
  EXPECT_EQ(back[31], 1);
  EXPECT_TRUE(std::isnan(back[32]));
}

}  // namespace
}  // namespace moegauge
