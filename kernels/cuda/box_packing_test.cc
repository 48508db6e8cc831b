// Packed weights are read here as the hardware reads a stage: by the 128-byte swizzle of the PTX
// ISA (bits 4 to 6 of an address within the box are exclusive-ored with bits 7 to 9).
#include "kernels/cuda/box_packing.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace moegauge::cuda {
namespace {

constexpr std::size_t box_bytes = 128 * 128, chunk_bytes = 2 * box_bytes;

// Byte `byte` of row `row` of a tile's step.
std::byte at(std::span<const std::byte> packed, std::size_t chunk, std::size_t row,
             std::size_t byte) {
  std::size_t address = row % 128 * 128 + byte;
  address ^= (address >> 7 & 7) << 4;
  return packed[chunk * chunk_bytes + row / 128 * box_bytes + address];
}

// Values that tell rows and bytes apart.
std::vector<std::byte> numbered(std::size_t rows, std::size_t row_bytes) {
  std::vector<std::byte> bytes(rows * row_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(1 + (i / row_bytes * 7 + i % row_bytes) % 251);
  }
  return bytes;
}

MatrixShape w13(std::int64_t inter, std::int64_t hidden, GateUpOrder order) {
  return {.role = Role::w13, .rows = 2 * inter, .cols = hidden, .gate_up_order = order};
}

// Neither 100 nor 300 fills a tile or a step.
TEST(BoxPackingTest, GateAndUpRowsLieBesideEachOtherAndWhatIsOutsideIsZero) {
  for (const GateUpOrder order : {GateUpOrder::concatenated, GateUpOrder::interleaved}) {
    for (const int element : {1, 2}) {
      const MatrixShape shape = w13(200, 150, order);
      const std::size_t row_bytes = 150 * static_cast<std::size_t>(element);
      const std::vector<std::byte> values = numbered(400, row_bytes);
      const std::size_t steps = element == 1 ? 2 : 3;
      std::vector<std::byte> packed(boxed_bytes(shape, element, WeightScales::none),
                                    std::byte{0xff});
      ASSERT_EQ(packed.size(), 2 * steps * chunk_bytes);
      pack_boxes({.shape = shape, .values = values}, element, WeightScales::none, packed);
      for (std::size_t tile = 0; tile < 2; ++tile) {
        for (std::size_t row = 0; row < 256; ++row) {
          const std::size_t column = tile * 128 + row % 128;  // of h
          const bool up = row >= 128;
          const std::size_t canonical = order == GateUpOrder::interleaved
                                            ? 2 * column + (up ? 1 : 0)
                                            : column + (up ? 200 : 0);
          for (std::size_t byte = 0; byte < steps * 128; ++byte) {
            const std::byte expected = column < 200 && byte < row_bytes
                                           ? values[canonical * row_bytes + byte]
                                           : std::byte{0};
            ASSERT_EQ(at(packed, tile * steps + byte / 128, row, byte % 128), expected)
                << "tile " << tile << " row " << row << " byte " << byte;
          }
        }
      }
    }
  }
}

TEST(BoxPackingTest, RowsOfTheDownProjectionFollowEachOther) {
  const MatrixShape shape = {.role = Role::w2, .rows = 336, .cols = 192};
  const std::vector<std::byte> values = numbered(336, 192);
  std::vector<std::byte> packed(boxed_bytes(shape, 1, WeightScales::none));
  ASSERT_EQ(packed.size(), 2 * 2 * chunk_bytes);
  pack_boxes({.shape = shape, .values = values}, 1, WeightScales::none, packed);
  for (std::size_t row = 0; row < 512; ++row) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::byte expected = row < 336 && byte < 192 ? values[row * 192 + byte] : std::byte{0};
      ASSERT_EQ(at(packed, row / 256 * 2 + byte / 128, row % 256, byte % 128), expected);
    }
  }
}

// 80 columns are one step of four units, of which the matrix has three; 1 is code 127. A thread of
// the kernel holds rows l and l + 8 of a warp's 16, in both boxes, and reads their words together.
TEST(BoxPackingTest, MicroscalingUnitsFollowTheirChunkAndANaNScaleBecomesNaNElements) {
  const MatrixShape shape = w13(24, 80, GateUpOrder::concatenated);
  const std::vector<std::byte> values = numbered(48, 80);
  std::vector<std::byte> scales(48 * 3);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::byte>(i);
  scales[5 * 3 + 1] = std::byte{255};
  std::vector<std::byte> packed(boxed_bytes(shape, 1, WeightScales::units), std::byte{0xff});
  ASSERT_EQ(packed.size(), chunk_bytes + 1024);
  pack_boxes({.shape = shape, .values = values, .scales = scales}, 1, WeightScales::units, packed);
  const auto word = [&](std::size_t warp, std::size_t l, std::size_t box, std::size_t half) {
    const std::byte* at = packed.data() + chunk_bytes + ((warp * 8 + l) * 4 + box * 2 + half) * 4;
    std::vector<int> codes;
    for (int unit = 0; unit < 4; ++unit) codes.push_back(static_cast<int>(at[unit]));
    return codes;
  };
  EXPECT_EQ(word(0, 3, 0, 0), (std::vector<int>{9, 10, 11, 127}));      // gate row 3
  EXPECT_EQ(word(0, 3, 0, 1), (std::vector<int>{33, 34, 35, 127}));     // gate row 11
  EXPECT_EQ(word(1, 7, 1, 0), (std::vector<int>{141, 142, 143, 127}));  // up row 23
  EXPECT_EQ(word(1, 7, 1, 1), (std::vector<int>{127, 127, 127, 127}));  // outside
  EXPECT_EQ(word(0, 5, 0, 0), (std::vector<int>{15, 127, 17, 127}));
  for (std::size_t byte = 0; byte < 80; ++byte) {
    const std::byte expected = byte >= 32 && byte < 64 ? std::byte{0x7f} : values[5 * 80 + byte];
    EXPECT_EQ(at(packed, 0, 5, byte), expected) << byte;
  }
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// N = 192: gate rows 128 to 191 and up rows 0 to 63 share the second row of blocks.
TEST(BoxPackingTest, EachBlockOf64RowsGetsTheScalesOfItsBlockOfTheMatrix) {
  const MatrixShape shape = w13(192, 300, GateUpOrder::concatenated);
  const std::vector<float> scales = counted(3 * 3);
  std::vector<float> packed(scale_count(WeightScales::blocks, shape), -1);
  pack_scales(WeightScales::blocks, {.shape = shape, .scales = std::as_bytes(std::span(scales))},
              packed);
  const std::vector<float> expected = {1, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9,   // rows 0, 64; 192, 256
                                       4, 5, 6, 0, 0, 0, 7, 8, 9, 0, 0, 0};  // 128; 320
  EXPECT_EQ(packed, expected);
}

// N = 80: up's first 48 rows share the first blocks with gate, the other 32 lie in the second.
TEST(BoxPackingTest, WhereUpBeginsInsideABlockEveryEightRowsHaveTheirScale) {
  const MatrixShape shape = w13(80, 128, GateUpOrder::concatenated);
  const std::vector<float> scales = counted(2);
  std::vector<float> packed(scale_count(WeightScales::blocks, shape), -1);
  pack_scales(WeightScales::blocks, {.shape = shape, .scales = std::as_bytes(std::span(scales))},
              packed);
  ASSERT_EQ(packed.size(), 32u);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(packed[i], i < 10 ? 1 : 0) << "gate rows from " << 8 * i;
    EXPECT_EQ(packed[16 + i], i < 6 ? 1 : i < 10 ? 2 : 0) << "up rows from " << 8 * i;
  }
}

TEST(BoxPackingTest, InterleavedRowsTakeTheirScalesFromBlocksHalfAsHigh) {
  const MatrixShape shape = w13(128, 128, GateUpOrder::interleaved);
  const std::vector<float> scales = counted(2);
  std::vector<float> packed(scale_count(WeightScales::blocks, shape));
  pack_scales(WeightScales::blocks, {.shape = shape, .scales = std::as_bytes(std::span(scales))},
              packed);
  EXPECT_EQ(packed, (std::vector<float>{1, 2, 1, 2}));
}

TEST(BoxPackingTest, ChannelsArePaddedToBlocksOf64) {
  const MatrixShape shape = w13(80, 16, GateUpOrder::interleaved);
  const std::vector<float> scales = counted(160);
  std::vector<float> packed(scale_count(WeightScales::channels, shape), -1);
  ASSERT_EQ(packed.size(), 256u);
  pack_scales(WeightScales::channels, {.shape = shape, .scales = std::as_bytes(std::span(scales))},
              packed);
  for (std::size_t n = 0; n < 128; ++n) {
    EXPECT_EQ(packed[n], n < 80 ? static_cast<float>(2 * n + 1) : 0);
    EXPECT_EQ(packed[128 + n], n < 80 ? static_cast<float>(2 * n + 2) : 0);
  }
}

TEST(BoxPackingTest, OneScaleOfAMatrixIsRepeatedForItsRows) {
  const MatrixShape shape = {.role = Role::w2, .rows = 48, .cols = 16};
  const std::vector<float> scales = {3};
  std::vector<float> packed(scale_count(WeightScales::matrix, shape));
  pack_scales(WeightScales::matrix, {.shape = shape, .scales = std::as_bytes(std::span(scales))},
              packed);
  EXPECT_EQ(packed, std::vector<float>(48, 3));
}

}  // namespace
}  // namespace moegauge::cuda
