// Every level's bulk conversions against the scalar formats, bit by bit, and its elementwise
// functions against the C library.
#include "kernels/cpu/isa/kernel_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa_level.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/e8m0.h"
#include "reference/formats/fp16.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int4.h"
#include "reference/formats/int8.h"

namespace moegauge::cpu {
namespace {

std::vector<IsaLevel> supported_levels() {
  std::vector<IsaLevel> levels;
  for (const IsaLevel level : all_isa_levels()) {
    if (supported(level)) levels.push_back(level);
  }
  return levels;
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

// Every bf16 value; the floats halfway between neighbours and the ones beside those, where rounding
// turns; and random bit patterns.
std::vector<float> interesting_floats() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u}) {
      values.push_back(std::bit_cast<float>((upper << 16) | lower));
    }
  }
  std::mt19937 engine(1);
  for (int i = 0; i < 100'003; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(engine())));
  }
  return values;
}

class KernelTableTest : public testing::TestWithParam<IsaLevel> {
 protected:
  const KernelTable& table() const { return kernels(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Levels, KernelTableTest, testing::ValuesIn(supported_levels()),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST_P(KernelTableTest, WidensEveryHalfAsTheScalarFormatsDo) {
  const std::vector<std::uint16_t> in = all_halves();
  std::vector<float> out(in.size());
  table().widen(NarrowType::bf16, in.data(), 65536, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
              std::bit_cast<std::uint32_t>(bf16_to_float(in[i])))
        << i;
  }
  table().widen(NarrowType::fp16, in.data(), 65536, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
              std::bit_cast<std::uint32_t>(fp16_to_float(in[i])))
        << i;
  }
}

TEST_P(KernelTableTest, NarrowsAsTheScalarFormatsDo) {
  const std::vector<float> in = interesting_floats();
  const auto n = static_cast<std::int64_t>(in.size());
  std::vector<std::uint16_t> out(in.size());
  table().narrow(NarrowType::bf16, in.data(), n, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], float_to_bf16(in[i])) << in[i];
  table().narrow(NarrowType::fp16, in.data(), n, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], float_to_fp16(in[i])) << in[i];
}

TEST_P(KernelTableTest, DecodesEveryFp8CodeAsTheScalarFormatsDo) {
  std::vector<std::uint8_t> in(256);
  for (std::size_t i = 0; i < 256; ++i) in[i] = static_cast<std::uint8_t>(i);
  std::vector<float> out(256);
  table().decode_fp8(Fp8Type::e4m3fn, in.data(), 256, out.data());
  for (std::size_t i = 0; i < 256; ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
              std::bit_cast<std::uint32_t>(e4m3fn_to_float(in[i])))
        << i;
  }
  table().decode_fp8(Fp8Type::e4m3fnuz, in.data(), 256, out.data());
  for (std::size_t i = 0; i < 256; ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
              std::bit_cast<std::uint32_t>(e4m3fnuz_to_float(in[i])))
        << i;
  }
}

TEST_P(KernelTableTest, EncodesFp8AsTheScalarFormatsDo) {
  std::vector<float> in = interesting_floats();
  // Halfway between neighbouring codes, and beside it.
  for (const auto& values : {kE4m3fnValues, kE4m3fnuzValues}) {
    for (std::size_t i = 0; i + 1 < 127; ++i) {
      const float middle = (values[i] + values[i + 1]) / 2;
      for (const float sign : {1.0f, -1.0f}) {
        in.push_back(sign * middle);
        in.push_back(sign * std::nextafter(middle, 0.0f));
        in.push_back(sign * std::nextafter(middle, 1000.0f));
      }
    }
  }
  const auto n = static_cast<std::int64_t>(in.size());
  std::vector<std::uint8_t> out(in.size());
  table().encode_fp8(Fp8Type::e4m3fn, kE4m3fnMax, in.data(), n, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], float_to_e4m3fn(in[i])) << in[i];
  for (const float maximum : {kE4m3fnuzMax, kE4m3fnuzReducedMax}) {
    table().encode_fp8(Fp8Type::e4m3fnuz, maximum, in.data(), n, out.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_EQ(out[i], float_to_e4m3fnuz(in[i], maximum)) << in[i];
    }
  }
}

// What each code of a codec stands for.
struct CodecValues {
  WeightCodec codec;
  int bits;
  float (*value)(int code);
};
constexpr CodecValues kCodecValues[] = {
    {WeightCodec::bf16, 16, [](int c) { return bf16_to_float(static_cast<std::uint16_t>(c)); }},
    {WeightCodec::fp16, 16, [](int c) { return fp16_to_float(static_cast<std::uint16_t>(c)); }},
    {WeightCodec::e4m3fn, 8, [](int c) { return e4m3fn_to_float(static_cast<std::uint8_t>(c)); }},
    {WeightCodec::e4m3fnuz, 8,
     [](int c) { return e4m3fnuz_to_float(static_cast<std::uint8_t>(c)); }},
    {WeightCodec::int8, 8, [](int c) { return static_cast<float>(static_cast<std::int8_t>(c)); }},
    {WeightCodec::int4, 4, [](int c) { return static_cast<float>(signed_nibble(c)); }},
    {WeightCodec::e2m1, 4, [](int c) { return e2m1_to_float(static_cast<std::uint8_t>(c)); }},
};

// A tile of two vectors of weights, as it is packed.
struct PackedTile {
  std::vector<std::uint8_t> codes, rare;
};

PackedTile packed_codes(const WeightLayout& layout, std::int64_t elements,
                        std::vector<std::uint8_t> codes) {
  std::vector<std::uint8_t> rare(static_cast<std::size_t>(elements / kRareElements));
  for (std::size_t i = 0; layout.recoded && i < codes.size(); ++i) {
    const auto line = static_cast<std::int64_t>(i / 64);
    const auto mark = static_cast<std::size_t>(line / 2 * layout.run / kRareElements);
    if (layout.rare[codes[i]]) rare[mark] = static_cast<std::uint8_t>(rare[mark] | 1 << line % 2);
    codes[i] = layout.recoded[codes[i]];
  }
  return {codes, rare};
}

// Column c of the first holds code first + c in
// element `hot`, everything else is zero.
PackedTile one_hot_weights(const WeightLayout& layout, std::int64_t elements, std::int64_t hot,
                           int first) {
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(elements / layout.run * 128));
  for (int c = 0; c < kVector; ++c) {
    const int place = layout.order[c * layout.run + hot % layout.run];
    const auto at =
        static_cast<std::size_t>(hot / layout.run * 128 + place * layout.element_bits / 8);
    const int code = first + c;
    if (layout.element_bits == 4) {
      packed[at] = static_cast<std::uint8_t>(packed[at] | (code & 15) << place % 2 * 4);
    } else {
      packed[at] = static_cast<std::uint8_t>(code);
      if (layout.element_bits == 16) packed[at + 1] = static_cast<std::uint8_t>(code >> 8);
    }
  }
  return packed_codes(layout, elements, packed);
}

// Rows of activations that are 1 in element `hot` and 0 elsewhere, as gemm reads them.
std::vector<float> one_hot_rows(const KernelTable& table, ActivationCodec codec, std::int64_t rows,
                                std::int64_t elements, std::int64_t hot) {
  const DotUnit unit = table.dot_unit(codec);
  std::vector<float> row(static_cast<std::size_t>(elements)), steps(row.size()),
      packed(static_cast<std::size_t>(rows * elements));
  row[static_cast<std::size_t>(hot)] = 1;
  table.encode({.in = row.data(),
                .elements = elements,
                .padded = elements,
                .codec = codec,
                .unit = unit,
                .out = steps.data()});
  const std::vector<const float*> pointers(static_cast<std::size_t>(rows), steps.data());
  table.pack_rows(pointers.data(), rows, elements / elements_per_step(unit), packed.data());
  return packed;
}

void expect_decoded(float got, float expected, DotUnit unit, int code) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got)) << code;
  } else if (std::isinf(expected)) {
    ASSERT_FALSE(std::isfinite(got)) << code;
  } else if (unit == DotUnit::bf16_pair && std::fpclassify(expected) == FP_SUBNORMAL) {
    ASSERT_TRUE(got == expected || got == 0) << code;  // the instruction flushes them
  } else {
    ASSERT_EQ(got, expected) << code;
  }
}

// One row with the value 1 at element k picks column k of the weights out of a GEMM: each code in
// each place of a run, for few rows and for as many as are worth a decoded copy.
TEST_P(KernelTableTest, DecodesEveryWeightCodeExactlyInsideAGemm) {
  constexpr std::int64_t kElements = 32;
  for (const CodecValues& c : kCodecValues) {
    SCOPED_TRACE(testing::Message() << "codec " << static_cast<int>(c.codec));
    const auto activation =
        c.codec == WeightCodec::fp16 ? ActivationCodec::fp16 : ActivationCodec::bf16;
    const DotUnit unit = table().dot_unit(activation);
    const WeightLayout layout = table().weight_layout(c.codec, unit);
    ASSERT_EQ(layout.element_bits, c.bits);
    const int codes = 1 << c.bits;
    for (const std::int64_t rows : {1, 9, 13}) {
      // 65536 codes of two places a run need no more than one round of all places.
      const int rounds = c.bits == 16 ? 1 : static_cast<int>(kElements);
      for (int i = 0; i < rounds * codes / 16; ++i) {
        const std::int64_t hot = c.bits == 16 ? i % kElements : i % rounds;
        const int first = c.bits == 16 ? i * 16 : i / rounds * 16;
        const auto w = one_hot_weights(layout, kElements, hot, first);
        const auto a = one_hot_rows(table(), activation, rows, kElements, hot);
        std::vector<float> panel(static_cast<std::size_t>(panel_floats(kElements)));
        std::vector<float> out(static_cast<std::size_t>(rows * 32), -7);
        table().gemm(c.codec, {.a = a.data(),
                               .rows = rows,
                               .unit = unit,
                               .w = reinterpret_cast<const std::byte*>(w.codes.data()),
                               .w_rare = layout.rare ? w.rare.data() : nullptr,
                               .vectors = 2,
                               .elements = kElements,
                               .block = kElements,
                               .panel = panel.data(),
                               .c = out.data()});
        for (int column = 0; column < kVector; ++column) {
          expect_decoded(out[static_cast<std::size_t>((rows - 1) * 32 + column)],
                         c.value(first + column), unit, first + column);
        }
      }
    }
  }
}

// The same for one code in a whole column between ones: where the codes around it are common, those
// that are decode without a look at the rare.
TEST_P(KernelTableTest, DecodesEveryFp8CodeAmongCommonOnes) {
  constexpr std::int64_t kElements = 32;
  const DotUnit unit = table().dot_unit(ActivationCodec::bf16);
  for (const CodecValues& c : kCodecValues) {
    if (c.codec != WeightCodec::e4m3fn && c.codec != WeightCodec::e4m3fnuz) continue;
    SCOPED_TRACE(testing::Message() << "codec " << static_cast<int>(c.codec));
    const WeightLayout layout = table().weight_layout(c.codec, unit);
    for (int i = 0; i < 256 * kElements; ++i) {
      const int code = i / kElements, rows = 1 + i % 3 * 4;
      const std::int64_t hot = i % kElements;
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(kElements / layout.run * 128), 0x38);
      for (int column = 0; column < kVector; ++column) {
        const int place = layout.order[column * layout.run + hot % layout.run];
        codes[static_cast<std::size_t>(hot / layout.run * 128 + place)] =
            static_cast<std::uint8_t>(code);
      }
      const PackedTile w = packed_codes(layout, kElements, codes);
      const auto a = one_hot_rows(table(), ActivationCodec::bf16, rows, kElements, hot);
      std::vector<float> panel(static_cast<std::size_t>(panel_floats(kElements)));
      std::vector<float> out(static_cast<std::size_t>(rows * 32), -7);
      table().gemm(c.codec, {.a = a.data(),
                             .rows = rows,
                             .unit = unit,
                             .w = reinterpret_cast<const std::byte*>(w.codes.data()),
                             .w_rare = layout.rare ? w.rare.data() : nullptr,
                             .vectors = 2,
                             .elements = kElements,
                             .block = kElements,
                             .panel = panel.data(),
                             .c = out.data()});
      for (int column = 0; column < kVector; ++column) {
        expect_decoded(out[static_cast<std::size_t>((rows - 1) * 32 + column)], c.value(code), unit,
                       code);
      }
      ASSERT_EQ(out[16], c.value(0x38));  // the other vector is not disturbed
    }
  }
}

TEST_P(KernelTableTest, ComputesActivationsToFp32Accuracy) {
  // c holds gate, up in vectors of 16.
  std::vector<float> c, gates, ups;
  for (float g = -20; g < 20; g += 0.0625f) gates.push_back(g);
  for (std::size_t i = 0; i < gates.size(); ++i) ups.push_back(1.0f + static_cast<float>(i % 7));
  for (std::size_t i = 0; i < gates.size(); i += 16) {
    c.insert(c.end(), gates.begin() + static_cast<std::ptrdiff_t>(i),
             gates.begin() + static_cast<std::ptrdiff_t>(i + 16));
    c.insert(c.end(), ups.begin() + static_cast<std::ptrdiff_t>(i),
             ups.begin() + static_cast<std::ptrdiff_t>(i + 16));
  }
  const auto rows = static_cast<std::int64_t>(gates.size() / 16);
  std::vector<float> out(gates.size());
  const auto check = [&](ActivationFunction function, auto truth) {
    table().activate({.c = c.data(),
                      .rows = rows,
                      .vectors = 2,
                      .function = function,
                      .alpha = 1.702f,
                      .beta = 1,
                      .limit = 7,
                      .out = out.data(),
                      .ld = 16});
    for (std::size_t i = 0; i < gates.size(); ++i) {
      const double expected = truth(double{gates[i]}, double{ups[i]});
      // A few units in the last place of fp32; far in the tail the exponent's own rounding counts.
      ASSERT_NEAR(out[i], expected, std::abs(expected) * 3e-5 + 1e-9) << gates[i];
      if (std::abs(gates[i]) < 4) {
        ASSERT_NEAR(out[i], expected, std::abs(expected) * 2e-6 + 1e-9) << gates[i];
      }
    }
  };
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  check(ActivationFunction::silu, [&](double g, double u) { return g * sigmoid(g) * u; });
  check(ActivationFunction::gelu_erf,
        [](double g, double u) { return g * 0.5 * std::erfc(-g / std::numbers::sqrt2) * u; });
  check(ActivationFunction::gelu_tanh, [&](double g, double u) {
    return g * sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g)) * u;
  });
  check(ActivationFunction::swiglu_clamped, [&](double g, double u) {
    g = std::min(g, 7.0);
    return (std::min(u, 7.0) + 1) * g * sigmoid(double{1.702f} * g);
  });
}

TEST_P(KernelTableTest, GivesExactActivationsWhereTheFunctionSaturates) {
  // silu and gelu of g >= 32 are g to the last bit of fp32, and 0 at 0: what `exact` inputs rely
  // on.
  std::vector<float> c(32);
  for (std::size_t i = 0; i < 16; ++i) {
    c[i] = i == 0 ? 0.0f : std::ldexp(1.5f, static_cast<int>(i) + 5);
    c[16 + i] = 4;
  }
  std::vector<float> out(16);
  for (const auto function : {ActivationFunction::silu, ActivationFunction::gelu_erf}) {
    table().activate({.c = c.data(),
                      .rows = 1,
                      .vectors = 2,
                      .function = function,
                      .out = out.data(),
                      .ld = 16});
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(out[i], 4 * c[i]);
  }
}

TEST_P(KernelTableTest, CarriesNanThroughEveryActivation) {
  for (const auto function : {ActivationFunction::silu, ActivationFunction::gelu_erf,
                              ActivationFunction::gelu_tanh, ActivationFunction::swiglu_clamped}) {
    std::vector<float> c(32, 1), out(16);
    c[3] = c[16 + 5] = std::numeric_limits<float>::quiet_NaN();
    table().activate({.c = c.data(),
                      .rows = 1,
                      .vectors = 2,
                      .function = function,
                      .alpha = 1.702f,
                      .beta = 1,
                      .limit = 7,
                      .out = out.data(),
                      .ld = 16});
    for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(std::isnan(out[i]), i == 3 || i == 5) << i;
  }
}

TEST_P(KernelTableTest, QuantisesGroupsByTheirLargestFiniteMagnitude) {
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

TEST_P(KernelTableTest, GivesGroupsTheirScaleByTheRuleAsked) {
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

TEST_P(KernelTableTest, RoundsToInt8AndFnuzAsTheScalarFormatsDo) {
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

TEST_P(KernelTableTest, GivesAnInt8GroupWithANanAScaleThatIsOne) {
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

TEST_P(KernelTableTest, GathersAndSumsElementsOfARow) {
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

std::vector<std::byte> as_scales(ScaleType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes;
  for (const float v : values) {
    const std::uint32_t bits = type == ScaleType::fp32   ? std::bit_cast<std::uint32_t>(v)
                               : type == ScaleType::bf16 ? float_to_bf16(v)
                                                         : float_to_fp16(v);
    for (int i = 0; i < scale_bytes(type); ++i) {
      bytes.push_back(static_cast<std::byte>(bits >> 8 * i & 0xFFu));
    }
  }
  return bytes;
}

// One row, two groups of 32 elements, two vectors: y = sum of a_scale * w_scale * (x * code - zero
// * sum x), worked out in exact arithmetic.
TEST_P(KernelTableTest, SubtractsZeroPointsAndScalesEachGroup) {
  const DotUnit unit = table().dot_unit(ActivationCodec::bf16);
  const WeightLayout layout = table().weight_layout(WeightCodec::int4, unit);
  std::vector<std::uint8_t> w(static_cast<std::size_t>(64 / layout.run * 128), 0x33);  // codes 3
  std::vector<float> x(64), steps(64), sums(2);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i < 32 ? 1.0f : 0.5f;
  table().encode({.in = x.data(),
                  .elements = 64,
                  .padded = 64,
                  .codec = ActivationCodec::bf16,
                  .unit = unit,
                  .out = steps.data()});
  table().sum_groups(unit, steps.data(), 64, 32, sums.data());
  std::vector<float> scale(64), zero(64), c(32);
  std::vector<float> panel(static_cast<std::size_t>(panel_floats(64)));
  for (std::size_t i = 0; i < 64; ++i) {
    scale[i] = i < 32 ? 2.0f : 0.25f;
    zero[i] = static_cast<float>(i % 5);
  }
  for (const ScaleType type : {ScaleType::fp32, ScaleType::bf16, ScaleType::fp16}) {
    const auto scale_bytes = as_scales(type, scale), zero_bytes = as_scales(type, zero);
    table().gemm(WeightCodec::int4, {.a = steps.data(),
                                     .rows = 1,
                                     .unit = unit,
                                     .w = reinterpret_cast<const std::byte*>(w.data()),
                                     .scale_type = type,
                                     .w_scale = scale_bytes.data(),
                                     .w_zero = zero_bytes.data(),
                                     .a_sum = sums.data(),
                                     .vectors = 2,
                                     .scale_lanes = 16,
                                     .elements = 64,
                                     .group = 32,
                                     .block = 64,
                                     .panel = panel.data(),
                                     .c = c.data()});
    const auto z = [](std::size_t at) { return static_cast<float>(at % 5); };
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(c[i], 2.0f * 32 * (3 - z(i)) + 0.25f * 16 * (3 - z(32 + i))) << i;
    }
  }
}

TEST(IsaLevels, AreNamedAndOrdered) {
  for (const IsaLevel level : all_isa_levels()) EXPECT_EQ(isa_level_from(to_string(level)), level);
  EXPECT_EQ(isa_level_from("avx9"), std::nullopt);
  EXPECT_TRUE(supported(IsaLevel::portable));
  EXPECT_TRUE(supported(best_isa_level()));
  if (!supported(IsaLevel::avx512_bf16)) {
    GTEST_SKIP() << "avx512_bf16 is not on this CPU: its kernels are compiled and not run";
  }
}

TEST(IsaLevels, FollowTheEnvironmentVariableAndSayWhatIsWrongWithIt) {
  const auto chosen = [](const char* value) {
    setenv(kIsaVariable, value, 1);
    const auto level = chosen_isa_level();
    unsetenv(kIsaVariable);
    return level;
  };
  EXPECT_EQ(chosen("portable").value(), IsaLevel::portable);
  EXPECT_EQ(chosen("").value(), best_isa_level());
  EXPECT_EQ(chosen("avx9").error(),
            "MOEGAUGE_CPU_ISA=avx9 names no instruction-set level; portable, avx2, avx512 or "
            "avx512_bf16");
}

}  // namespace
}  // namespace moegauge::cpu
