// Every level's GEMM: each code of each codec in each place of a run, and the scales of a group.
#include <bit>
#include <cmath>

#include "kernels/cpu/isa/level_testing.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e2m1.h"
#include "reference/formats/fp16.h"
#include "reference/formats/fp8.h"
#include "reference/formats/int4.h"

namespace moegauge::cpu {
namespace {

class GemmTest : public LevelTest {};
INSTANTIATE_TEST_SUITE_P(Levels, GemmTest, testing::ValuesIn(supported_levels()), level_name);

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

// a w of `rows` rows and two vectors of columns, all elements in one block.
std::vector<float> product(const KernelTable& table, WeightCodec codec, DotUnit unit,
                           const std::vector<float>& a, std::int64_t rows, const PackedTile& w) {
  constexpr std::int64_t kElements = 32;
  std::vector<float> panel(static_cast<std::size_t>(panel_floats(kElements)));
  std::vector<float> out(static_cast<std::size_t>(rows * 32), -7);
  table.gemm(codec, {.a = a.data(),
                     .rows = rows,
                     .unit = unit,
                     .w = reinterpret_cast<const std::byte*>(w.codes.data()),
                     .w_rare = table.weight_layout(codec, unit).rare ? w.rare.data() : nullptr,
                     .vectors = 2,
                     .elements = kElements,
                     .block = kElements,
                     .panel = panel.data(),
                     .c = out.data()});
  return out;
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
TEST_P(GemmTest, DecodesEveryWeightCodeExactlyInsideAGemm) {
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
        const std::vector<float> out = product(table(), c.codec, unit, a, rows, w);
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
TEST_P(GemmTest, DecodesEveryFp8CodeAmongCommonOnes) {
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
      const std::vector<float> out = product(table(), c.codec, unit, a, rows, w);
      for (int column = 0; column < kVector; ++column) {
        expect_decoded(out[static_cast<std::size_t>((rows - 1) * 32 + column)], c.value(code), unit,
                       code);
      }
      ASSERT_EQ(out[16], c.value(0x38));  // the other vector is not disturbed
    }
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
TEST_P(GemmTest, SubtractsZeroPointsAndScalesEachGroup) {
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

}  // namespace
}  // namespace moegauge::cpu
