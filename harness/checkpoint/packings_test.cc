// Packings by bit patterns that were worked out by hand from their formats.
#include "harness/checkpoint/packings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/tensors/safetensors_testing.h"

namespace moegauge {
namespace {

using Shape = std::vector<std::int64_t>;
using Codes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Tensors in a file, as slabs.
class Packed : public testing::Test {
 protected:
  template <typename T>
  Slab slab(const std::string& dtype, const Shape& shape, const std::vector<T>& values) {
    const std::string data = bytes_of(values);
    std::string header = R"({"t":{"dtype":")" + dtype + R"(","shape":[)";
    for (std::size_t i = 0; i < shape.size(); ++i) {
      header += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    }
    header += R"(],"data_offsets":[0,)" + std::to_string(data.size()) + "]}}";
    const std::string name = std::to_string(files_.size()) + ".safetensors";
    files_.push_back(
        std::make_unique<SafetensorsFile>(folder_.write(name, raw_safetensors(header, data))));
    return {files_.back().get(), &files_.back()->at("t"), shape, 0};
  }
  Slab words(const Shape& shape, const std::vector<std::uint32_t>& values) {
    return slab("I32", shape, values);
  }
  // 1, 0.5 and so on in fp16: 0x3C00, 0x3800.
  Slab halves(const Shape& shape, const std::vector<std::uint16_t>& values) {
    return slab("F16", shape, values);
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
};

constexpr std::uint16_t kOne = 0x3C00, kHalf = 0x3800, kTwo = 0x4000;
constexpr OperandTraits kInt4 = {.element = Element::int4, .scale = ScaleKind::activation_dtype};
constexpr OperandTraits kInt8 = {.element = Element::int8, .scale = ScaleKind::activation_dtype};

// Two rows of eight columns: codes 0 to 7 and 8 to 15, the first column in the lowest bits. Zero
// points 7 and 15 of rows 0 and 1 are one word, row 0 lowest.
TEST_F(Packed, GptqHasColumnsInWordsAndZeroPointsLessOne) {
  GptqSlabs slabs = {.weight = words({1, 2}, {0x76543210, 0xFEDCBA98}),
                     .zeros = words({1, 1}, {0x000000F7}),
                     .scale = halves({1, 2}, {kOne, kHalf}),
                     .group_index = {}};
  const Unpacked rows = read_gptq(slabs, {.bits = 4, .group = 8}, {0, 2, 8});
  EXPECT_EQ(rows.codes, (Codes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(rows.zeros, (Codes{8, 0}));  // 15 + 1 wraps
  EXPECT_EQ(dequantize(rows, kInt4),
            (Floats{-8, -7, -6, -5, -4, -3, -2, -1, 4, 4.5f, 5, 5.5f, 6, 6.5f, 7, 7.5f}));
  slabs.zeros_less_one = false;
  EXPECT_EQ(read_gptq(slabs, {.bits = 4, .group = 8}, {0, 2, 8}).zeros, (Codes{7, 15}));
}

// Eight columns of one row are two words; of two groups of four the second has scale 2, and only
// the first row of a tensor of two is asked for, then only the second.
TEST_F(Packed, GptqOfEightBitsHasFourCodesInAWord) {
  const GptqSlabs slabs = {
      .weight = words({2, 2}, {0x04030201, 0x84838281, 0xFFFE0100, 0x00000000}),
      .zeros = words({2, 1}, {0x0000FF00, 0x00007F7F}),
      .scale = halves({2, 2}, {kOne, kOne, kTwo, kHalf}),
      .group_index = {}};
  const Unpacked first = read_gptq(slabs, {.bits = 8, .group = 4}, {0, 1, 8});
  EXPECT_EQ(first.codes, (Codes{1, 2, 3, 4, 0x00, 0x01, 0xFE, 0xFF}));
  EXPECT_EQ(first.zeros, (Codes{1, 128}));
  EXPECT_EQ(dequantize(first, kInt8), (Floats{0, 1, 2, 3, -256, -254, 252, 254}));
  const Unpacked second = read_gptq(slabs, {.bits = 8, .group = 4}, {1, 2, 8});
  EXPECT_EQ(second.codes, (Codes{0x81, 0x82, 0x83, 0x84, 0, 0, 0, 0}));
  EXPECT_EQ(second.zeros, (Codes{0, 128}));  // 255 + 1 wraps
  EXPECT_EQ(second.scales, (Floats{1, 0.5f}));
}

// The first four of eight columns, of groups 1, 0, 0, 1: all groups are kept.
TEST_F(Packed, AGroupIndexKeepsAllGroupsOfCutColumns) {
  const GptqSlabs slabs = {.weight = words({1, 1}, {0x99999999}),
                           .zeros = words({2, 1}, {0x00000007, 0x00000006}),
                           .scale = halves({2, 1}, {kOne, kTwo}),
                           .group_index = words({8}, {1, 0, 0, 1, 0, 1, 0, 1})};
  const Unpacked rows = read_gptq(slabs, {.bits = 4, .group = 4}, {0, 1, 4});
  EXPECT_EQ(rows.units, 2);
  EXPECT_EQ(rows.group_of, (std::vector<std::int32_t>{1, 0, 0, 1}));
  EXPECT_EQ(dequantize(rows, kInt4), (Floats{(9 - 7) * 2, 9 - 8, 9 - 8, (9 - 7) * 2}));
}

// Within a word AWQ has rows 0, 2, 4, 6, 1, 3, 5, 7, the first lowest: row r with the code r is
// 0x75316420. Zero points lie likewise, as they count.
TEST_F(Packed, AwqHasRowsInItsOrder) {
  const AwqSlabs slabs = {.weight = words({2, 1}, {0x75316420, 0xFDB9ECA8}),
                          .zeros = words({1, 1}, {0x75316420}),
                          .scale = halves({1, 8}, std::vector<std::uint16_t>(8, kOne))};
  const Unpacked rows = read_awq(slabs, {.bits = 4, .group = 128}, {0, 8, 2});
  EXPECT_EQ(rows.codes, (Codes{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15}));
  EXPECT_EQ(rows.zeros, (Codes{0, 1, 2, 3, 4, 5, 6, 7}));
  const Unpacked third = read_awq(slabs, {.bits = 4, .group = 128}, {2, 3, 1});
  EXPECT_EQ(third.codes, Codes{2});
  EXPECT_EQ(third.zeros, Codes{2});
}

// Values -8 to 7 are stored with 8 added; ten columns are two words, of which the second holds two.
TEST_F(Packed, CompressedTensorsHaveRowsOfWords) {
  const CompressedSlabs slabs = {
      .weight = words({2, 2}, {0x76543210, 0x000000F8, 0x88888888, 0x00000088}),
      .scale = slab<std::uint16_t>("BF16", {2, 2}, {0x3F80, 0x4000, 0x3F00, 0x3F80}),
      .zero_point = words({1, 2}, {0x00000098, 0x000000A8}),
      .group_index = {}};
  const Unpacked rows = read_compressed(slabs, {.bits = 4, .group = 8}, {0, 2, 10});
  EXPECT_EQ(rows.codes, (Codes{0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}));
  EXPECT_EQ(rows.scales, (Floats{1, 2, 0.5f, 1}));
  EXPECT_EQ(rows.zeros, (Codes{8, 8, 9, 10}));  // rows 0 and 1 are nibbles of one word
  EXPECT_EQ(dequantize(rows, kInt4),
            (Floats{-8,    -7,    -6,    -5,    -4,    -3,    -2,    -1,    0,  14,
                    -0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -2, -2}));
}

// 0x31: column 0 is code 1 (0.5), column 1 code 3 (1.5); scale 2^(128 - 127), then 2^-1.
TEST_F(Packed, Mxfp4HasTheEvenColumnInTheLowNibble) {
  std::vector<std::uint8_t> blocks(32, 0);
  blocks[0] = 0x31;
  blocks[15] = 0x90;  // column 30: 0, column 31: -0.5
  blocks[16] = 0x7F;  // column 32: -6, column 33: 6
  const Unpacked rows = read_mxfp4(slab("U8", {1, 2, 16}, blocks),
                                   slab<std::uint8_t>("U8", {1, 2}, {128, 126}), {0, 1, 34});
  const Floats values =
      dequantize(rows, {.element = Element::e2m1, .scale = ScaleKind::e8m0, .unit = {1, 32}});
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 3);
  EXPECT_EQ(values[31], -1);
  EXPECT_EQ(values[32], -3);
  EXPECT_EQ(values[33], 3);
}

// E4M3FN: 0x38 is 1, 0x7E is 448, 0xC0 is -2.
TEST_F(Packed, BytesHaveAScalePerTensorChannelOrBlock) {
  const Slab weight = slab<std::uint8_t>("F8_E4M3", {2, 3}, {0x38, 0x7E, 0xC0, 0x38, 0x38, 0x38});
  constexpr OperandTraits kFp8 = {.element = Element::e4m3fn, .scale = ScaleKind::fp32};
  const auto values = [&](const Shape& shape, const Floats& scales, ScaleUnit unit, Extent extent) {
    return dequantize(read_bytes(weight, slab("F32", shape, scales), unit, extent), kFp8);
  };
  EXPECT_EQ(values({1, 1}, {2}, {0, 0}, {0, 2, 3}), (Floats{2, 896, -4, 2, 2, 2}));
  EXPECT_EQ(values({2, 1}, {2, 4}, {1, 0}, {0, 2, 2}), (Floats{2, 896, 4, 4}));
  EXPECT_EQ(values({1, 2}, {2, 4}, {2, 2}, {1, 2, 3}), (Floats{2, 2, 4}));
}

// Fused experts are stored as their modelling code multiplies, x W: [cols, rows].
TEST_F(Packed, PlainWeightsMayBeTransposed) {
  const Slab weight = slab<std::uint16_t>("BF16", {2, 3},
                                          {0x3F80, 0x4000, 0x4040,    // 1, 2, 3
                                           0x4080, 0x40A0, 0x40C0});  // 4, 5, 6
  EXPECT_EQ(read_plain(weight, false, {1, 2, 2}).values, (Floats{4, 5}));
  EXPECT_EQ(read_plain(weight, true, {1, 3, 2}).values, (Floats{2, 5, 3, 6}));
}

}  // namespace
}  // namespace moegauge
