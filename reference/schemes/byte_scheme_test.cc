// FP8 and int8 schemes: codes and scales worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/formats/fp8.h"
#include "reference/schemes/scheme_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// E4M3FN: 448 = 1.75 * 2^8 is 0x7E, 224 is 0x76, 1 is 0x38.
TEST(Fp8Block, ScalesEachBlockByItsLargestMagnitude) {
  const auto scheme = make_scheme("fp8_block");
  Floats w(129 * 130, 0.0f);  // 2 x 2 blocks, the last ones ragged
  w[0] = 896;                 // block (0, 0)
  w[1] = 2;
  w[129] = -7;                 // row 0, column 129: block (0, 1)
  w[1 * 130 + 128] = 3.5f;     // row 1: the same block
  w[128 * 130 + 0] = 448e-3f;  // block (1, 0); block (1, 1) stays zero
  const auto storage = quantize(*scheme, {Role::w2, 129, 130}, w);
  const ConstMatrix m = std::as_const(storage).view();
  EXPECT_EQ(read_as<float>(m.scales),
            (Floats{896.0f / 448.0f, 7.0f / 448.0f, 448e-3f / 448.0f, 1e-10f / 448.0f}));
  const auto codes = read_as<std::uint8_t>(m.values);
  EXPECT_EQ(codes[0], 0x7E);
  EXPECT_EQ(codes[1], 0x38);
  EXPECT_EQ(codes[129], 0xFE);
  EXPECT_EQ(codes[130 + 128], 0x76);
  EXPECT_EQ(codes[128 * 130], 0x7E);
  EXPECT_EQ(codes[128 * 130 + 129], 0x00);
  const auto back = dequantize(*scheme, storage);
  EXPECT_EQ(back[0], 896);
  EXPECT_EQ(back[129], -7);
  EXPECT_EQ(back[128 * 130],
            448.0 * (448e-3f / 448.0f));  // an exact product, not the float's value
}

TEST(Fp8Block, CountsBlocksOverGateAndUpTogether) {
  // N = 192: three blocks of rows, the second half gate and half up.
  const auto scheme = make_scheme("fp8_block");
  Floats w(384 * 1, 1.0f);
  w[191] = 448;  // the last gate row
  const auto storage = quantize(*scheme, {Role::w13, 384, 1}, w);
  EXPECT_EQ(read_as<float>(std::as_const(storage).view().scales),
            (Floats{1.0f / 448, 1.0f, 1.0f / 448}));
}

TEST(Fp8Block, QuantizesActivationsPerTokenAndGroupOf128) {
  const auto scheme = make_scheme("fp8_block");
  Floats x(2 * 130, 0.0f);
  x[0] = 448;           // token 0, group 0: scale 1
  x[1] = 17;            // between the codes 16 and 18: ties to the even mantissa, 16
  x[2] = 19;            // between 18 and 20: 20
  x[128] = 4.48f;       // token 0, group 1 (two elements)
  x[130 + 0] = 1e-30f;  // token 1, group 0: below the floor
  const auto out = emulate(*scheme, x, {.rows = 2, .cols = 130});
  EXPECT_EQ(out[0], 448);
  EXPECT_EQ(out[1], 16);
  EXPECT_EQ(out[2], 20);
  EXPECT_EQ(out[128], 448.0 * (4.48f / 448.0f));
  EXPECT_EQ(out[130], 0);  // 1e-30 / (1e-10 / 448) is far below the smallest code
}

TEST(Fp8Block, LeavesNonFiniteElementsOutOfTheScale) {
  const auto scheme = make_scheme("fp8_block");
  const float inf = std::numeric_limits<float>::infinity();
  const auto out = emulate(*scheme, {2, inf, -inf, std::nanf(""), 1}, {.rows = 1, .cols = 5});
  const double scale = 2.0f / 448.0f;
  EXPECT_EQ(out[0], 448 * scale);
  EXPECT_EQ(out[1], 448 * scale);  // infinity saturates
  EXPECT_EQ(out[2], -448 * scale);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], 224 * scale);
}

// The two ways of scaling differ only next to ties, here 17 units; the scheme must divide.
TEST(Fp8Block, DividesInFp32AndDoesNotMultiplyByAReciprocal) {
  const auto scheme = make_scheme("fp8_block");
  int told_apart = 0;
  for (int i = 1; i <= 1000; ++i) {
    const float amax = static_cast<float>(i) / 64.0f, scale = amax / 448.0f;
    const float x = 17.0f * scale;
    const float divided = e4m3fn_to_float(float_to_e4m3fn(x / scale));
    const float multiplied = e4m3fn_to_float(float_to_e4m3fn(x * (1.0f / scale)));
    if (divided == multiplied) continue;
    ++told_apart;
    EXPECT_EQ(emulate(*scheme, {amax, x}, {.rows = 1, .cols = 2})[1],
              divided * static_cast<double>(scale));
  }
  EXPECT_GT(told_apart, 0);
}

TEST(Fp8BlockFnuz, EncodesWithBiasEightAndMaximum240) {
  const auto scheme = make_scheme("fp8_block_fnuz");
  const auto storage = quantize(*scheme, {Role::w2, 1, 3}, {480, -2, 0});
  EXPECT_EQ(read_as<float>(std::as_const(storage).view().scales), Floats{2});
  // 240 = 1.875 * 2^7 is 0x7F, -1 is 0xC0.
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(storage).view().values), (Bytes{0x7F, 0xC0, 0x00}));
  EXPECT_EQ(dequantize(*scheme, storage), (Doubles{480, -2, 0}));
}

TEST(Fp8BlockFnuz, SaturatesActivationsAtThePolicysMaximum) {
  EXPECT_EQ(emulate(*make_scheme("fp8_block_fnuz"), {240, 1}, {.rows = 1, .cols = 2}),
            (Doubles{240, 1}));
  // 224: scale 1; with 240 as amax the scale is fl(240 / 224) and the code is 224.
  EXPECT_EQ(emulate(*make_scheme("fp8_block_fnuz224"), {224, 1}, {.rows = 1, .cols = 2}),
            (Doubles{224, 1}));
  EXPECT_EQ(emulate(*make_scheme("fp8_block_fnuz224"), {240, 0}, {.rows = 1, .cols = 2})[0],
            224.0 * (240.0f / 224.0f));
  EXPECT_EQ(make_scheme("fp8_block_fnuz224")->traits().activation.highest, 224);
  EXPECT_EQ(make_scheme("fp8_block_fnuz224")->traits().weight.highest, 240);
}

// As MXFP8, the first group has scale 1 (17 ties to 16), the second scale 2 (449 is 224.5 units,
// 224). The block's amax is then 448; of the weights themselves it would be 449.
TEST(Fp8BlockFromMx, RoundsWeightsAsMxfp8AndThenAsBlocks) {
  Floats w(40, 0.0f);
  w[0] = 448;
  w[1] = 17;
  w[32] = 449;
  const auto ocp = quantize(*make_scheme("fp8_block_frommx"), {Role::w2, 1, 40}, w);
  const ConstMatrix m = std::as_const(ocp).view();
  EXPECT_EQ(read_as<float>(m.scales), Floats{1});
  EXPECT_EQ(read_as<std::uint8_t>(m.values)[32], 0x7E);
  const auto scheme = make_scheme("fp8_block_frommx_fnuz");
  const auto fnuz = quantize(*scheme, {Role::w2, 1, 40}, w);
  EXPECT_EQ(read_as<float>(std::as_const(fnuz).view().scales), Floats{2});
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(fnuz).view().values)[32], 0x7E);  // 224 in FNUZ
  const auto back = dequantize(*scheme, fnuz);
  EXPECT_EQ(back, dequantize(*make_scheme("fp8_block_frommx"), ocp));
  EXPECT_EQ(back[1], 16);
  EXPECT_EQ(back[32], 448);
}

TEST(Fp8Ptpc, ScalesWeightsPerOutputChannelAndActivationsPerToken) {
  const auto scheme = make_scheme("fp8_ptpc");
  Floats w(2 * 300, 0.0f);
  w[299] = 448;
  w[300] = -224;
  const auto storage = quantize(*scheme, {Role::w2, 2, 300}, w);
  EXPECT_EQ(read_as<float>(std::as_const(storage).view().scales), (Floats{1.0f, 0.5f}));
  const auto out = emulate(*scheme, {896, 2, 448, 2}, {.rows = 2, .cols = 2});
  EXPECT_EQ(out, (Doubles{896, 2, 448, 2}));
}

TEST(Fp8Ptpc, BoundsTheActivationScaleFromBelow) {
  // 1 / (448 * 512) = 4.36e-6: amax below 1 / 512 does not make the scale smaller.
  const auto out = emulate(*make_scheme("fp8_ptpc"), {0x1p-12f, 0}, {.rows = 1, .cols = 2});
  const float scale = 1.0f / (448.0f * 512.0f);
  EXPECT_EQ(out[0], 56.0 * scale);  // 2^-12 / s = 448 / 8
}

TEST(Fp8Tensor, TakesOneScaleForAllRowsOfTheCall) {
  const auto out = emulate(*make_scheme("fp8_tensor"), {448, 0, 0, 17}, {.rows = 2, .cols = 2});
  EXPECT_EQ(out, (Doubles{448, 0, 0, 16}));  // 17 alone would be exact, as the largest
}

TEST(Fp8Tensor, StaticScaleIsTheCalibratedOne) {
  const auto scheme = make_scheme("fp8_tensor_static");
  EXPECT_TRUE(scheme->traits().activation.static_scale);
  const auto out = emulate(*scheme, {1, 17, 2000},
                           {.rows = 1, .cols = 3, .dtype = Dtype::bf16, .static_scale = 2.0f});
  EXPECT_EQ(out, (Doubles{1, 17 - 1, 896}));  // 8.5 ties to 8; 1000 saturates at 448
}

// Gate amax 448 (scale 1), up amax 28 (scale 1/16). Up's 17/16 is 17 in its own units, which ties
// to 16, so 1; requantised to scale 1 it stays 1. Directly at scale 1, 17/16 would also tie to 1,
// so a second element shows the double rounding: 1.03125 = 16.5/16 rounds to 16/16 = 1 first.
TEST(Fp8Tensor, RequantizesTheSmallerHalfToTheLargerScale) {
  const auto scheme = make_scheme("fp8_tensor");
  // Rows: gate, gate, up, up.
  const Floats w = {448, 1, 3, 5, 28, 1.0625f, 1.1875f, 1.125f};
  const MatrixShape shape = {.role = Role::w13, .rows = 4, .cols = 2};
  const auto storage = quantize(*scheme, shape, w);
  EXPECT_EQ(read_as<float>(std::as_const(storage).view().scales), Floats{1});
  // 19/16 ties between 18 and 20 units to 20, 1.25 at scale 1; rounding it to scale 1 directly
  // would also see a tie, between 1.125 and 1.25, and give 1.25. 18/16 is a code of both.
  EXPECT_EQ(dequantize(*scheme, storage), (Doubles{448, 1, 3, 5, 28, 1, 1.25, 1.125}));
}

TEST(Fp8Tensor, RoundsTwiceWhereTheScalesDiffer) {
  const auto scheme = make_scheme("fp8_tensor");
  // Gate amax 448: scale 1. Up amax 420: scale 420/448 = 0.9375. Up's 17.5 is 18.67 of its units,
  // code 18 (codes 18 and 20; 18.67 is nearer to 18), 16.875 after decoding, which at scale 1
  // rounds to 16 (codes 16 and 18, middle 17). Rounded once, 17.5 would be 18.
  const auto once = quantize(*scheme, {Role::w2, 2, 2}, {448, 1, 420, 17.5f});
  EXPECT_EQ(dequantize(*scheme, once)[3], 18);
  const auto twice = quantize(*scheme, {Role::w13, 2, 2}, {448, 1, 420, 17.5f});
  EXPECT_EQ(dequantize(*scheme, twice)[3], 16);
}

TEST(Fp8Tensor, KnowsWhichRowsAreUpWhenInterleaved) {
  const auto scheme = make_scheme("fp8_tensor");
  // Rows g0 u0 g1 u1 of one column. Only up is small and so requantised, to 18.67 -> 16 as above.
  MatrixShape shape = {.role = Role::w13, .rows = 4, .cols = 1};
  shape.gate_up_order = GateUpOrder::interleaved;
  const auto storage = quantize(*scheme, shape, {448, 420, 17.5f, 17.5f});
  EXPECT_EQ(dequantize(*scheme, storage)[2], 18);
  EXPECT_EQ(dequantize(*scheme, storage)[3], 16);
}

TEST(Mxfp8, ChoosesTheSmallestPowerOfTwoThatHoldsTheGroup) {
  const auto scheme = make_scheme("mxfp8");
  Floats w(3 * 40, 0.0f);  // groups of 32 and 8
  w[0] = 448;              // scale 1: code 127
  w[32] = 449;             // above 448: scale 2
  w[40] = 0.875f;          // 448 * 2^-9: scale 2^-9
  const auto storage = quantize(*scheme, {Role::w2, 3, 40}, w);
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(storage).view().scales),
            (Bytes{127, 128, 118, 0, 0, 0}));
  const auto back = dequantize(*scheme, storage);
  EXPECT_EQ(back[0], 448);
  EXPECT_EQ(back[32], 448);  // 224.5 in units of 2 rounds to 224
  EXPECT_EQ(back[40], 0.875);
  EXPECT_EQ(emulate(*scheme, {449, 0}, {.rows = 1, .cols = 2})[0], 448);
}

TEST(Mxfp8Floor, PutsTheLargestElementBetweenOneAndTwo) {
  const auto scheme = make_scheme("mxfp8_floor");
  const auto storage = quantize(*scheme, {Role::w2, 1, 2}, {449, -1});
  // floor(log2 449) = 8: code 135; 449 / 256 = 1.754 is the code 0x3E (1.75), 2^-8 is 0x02 (2 *
  // 2^-9).
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(storage).view().scales), Bytes{135});
  EXPECT_EQ(read_as<std::uint8_t>(std::as_const(storage).view().values), (Bytes{0x3E, 0x82}));
}

// In FNUZ (bias 8) 240 is 0x7F, 120 is 0x77, 1 is 0x40.
TEST(Mxfp8Fnuz, MapsToTheFlavoursMaximum) {
  const auto scheme = make_scheme("mxfp8_fnuz");
  Floats w(3 * 32, 0.0f);
  w[0] = 240;    // scale 1
  w[32] = 241;   // above 240: scale 2; 120.5 units round to 120
  w[64] = -448;  // scale 2: 224 units
  w[65] = 2;
  const auto storage = quantize(*scheme, {Role::w2, 3, 32}, w);
  const ConstMatrix m = std::as_const(storage).view();
  EXPECT_EQ(read_as<std::uint8_t>(m.scales), (Bytes{127, 128, 128}));
  const auto codes = read_as<std::uint8_t>(m.values);
  EXPECT_EQ(codes[0], 0x7F);
  EXPECT_EQ(codes[32], 0x77);
  EXPECT_EQ(codes[64], 0xFE);  // -224 = -1.75 * 2^7
  EXPECT_EQ(codes[65], 0x40);
}

TEST(Mxfp8Fnuz, TakesThePolicysMaximumForActivations) {
  // 240 is within 240, in units of 1, and beyond 224, in units of 2. The smallest code is 2^-10;
  // half of it ties to zero.
  EXPECT_EQ(emulate(*make_scheme("mxfp8_fnuz"), {240, 0x1p-10f}, {.rows = 1, .cols = 2}),
            (Doubles{240, 0x1p-10}));
  EXPECT_EQ(emulate(*make_scheme("mxfp8_fnuz224"), {240, 0x1p-10f}, {.rows = 1, .cols = 2}),
            (Doubles{240, 0}));
  // floor(log2 240) = 7 for either: 240 / 128 = 1.875.
  EXPECT_EQ(emulate(*make_scheme("mxfp8_floor_fnuz"), {240, -1}, {.rows = 1, .cols = 2}),
            (Doubles{240, -1}));
}

TEST(W8A8Int8, ScalesChannelsAndTokensTo127) {
  const auto scheme = make_scheme("w8a8_int8");
  const auto storage = quantize(*scheme, {Role::w2, 2, 2}, {254, -3, -63.5f, 0.25f});
  EXPECT_EQ(read_as<float>(std::as_const(storage).view().scales), (Floats{2.0f, 0.5f}));
  // -1.5 and 0.5 tie to the even -2 and 0.
  EXPECT_EQ(read_as<std::int8_t>(std::as_const(storage).view().values),
            (std::vector<std::int8_t>{127, -2, -127, 0}));
  EXPECT_EQ(dequantize(*scheme, storage), (Doubles{254, -4, -63.5, 0}));
  EXPECT_EQ(emulate(*scheme, {127, 0.5f, 12.7f, 1}, {.rows = 2, .cols = 2}),
            (Doubles{127, 0, 127.0 * (12.7f / 127.0f), 10.0 * (12.7f / 127.0f)}));
}

}  // namespace
}  // namespace moegauge
