// Packed integer weights are read here as the kernel reads them: by the fragment layout that the
// PTX ISA gives for wgmma's A operand in registers (lane l of warp w holds, in half c of register
// r, row 16 w + l / 4 + 8 (r % 2) and column 8 (r / 2) + 2 (l % 4) + c of a 64 x 16 tile), and
// 16-byte loads by 32 lanes. What comes out must be what the reference dequantises.
#include "kernels/cuda/int_packing.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cuda/schemes/cuda_scheme.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::cuda {
namespace {

constexpr int hidden = 336, inter = 192;  // neither fills the last step or tile

Layer small_layer() {
  return {.experts = 2, .top_k = 1, .hidden_size = hidden, .intermediate_size = inter};
}

template <typename T>
T read(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// One weight of a chunk, as the thread that holds it sees it.
struct Reader {
  IntFormat format;
  std::span<const std::byte> chunk;

  double weight(int row, int column) const {
    const int box = row / 128, warp_of_box = row / 16 % 8, r16 = row % 16;
    const int lane = r16 % 8 * 4 + column % 8 / 2;
    const int instruction = column / 16, half = column % 2;
    const int reg = column % 16 / 8 * 2 + r16 / 8;
    const int lines = format.bits / 4;
    // Blocks of 16 rows; in each 64 columns, then the rest; a line is 32 lanes of 16 bytes.
    const auto line = static_cast<std::size_t>((box * 8 + warp_of_box) * 2 + column / 64) * lines +
                      (format.bits == 8 ? static_cast<std::size_t>(instruction % 4 / 2) : 0);
    const std::size_t at = line * 512 + static_cast<std::size_t>(lane) * 16;
    unsigned code = 0;
    if (format.bits == 4) {
      const auto word =
          read<std::uint32_t>(chunk, at + static_cast<std::size_t>(instruction % 4) * 4);
      code = word >> (16 * half + 4 * reg) & 15;
    } else {
      code = static_cast<unsigned>(
          chunk[at + static_cast<std::size_t>(instruction % 2 * 8 + reg * 2 + half)]);
    }
    // Per group: the scales of each warp's rows, a thread's two rows of both boxes together.
    const std::size_t group = static_cast<std::size_t>(column / format.group);
    const auto place =
        static_cast<std::size_t>((warp_of_box * 8 + r16 % 8) * 4 + box * 2 + r16 / 8);
    const std::size_t codes = static_cast<std::size_t>(format.bits) * 4096;
    const std::size_t groups = static_cast<std::size_t>(128 / format.group);
    const auto scale = read<std::uint16_t>(chunk, codes + group * 512 + place * 2);
    int zero = 1 << (format.bits - 1);
    if (format.zero_points)
      zero = static_cast<int>(chunk[codes + groups * 512 + group * 256 + place]);
    // E2M1: sign, two bits of exponent with bias 1, one of mantissa; 1 is the least, 0.5.
    const double float_of_code =
        (code & 8 ? -1 : 1) *
        ((code & 6) == 0 ? (code & 1) * 0.5
                         : std::ldexp(1 + (code & 1) * 0.5, static_cast<int>(code >> 1 & 3) - 1));
    return (format.e2m1 ? float_of_code : static_cast<int>(code) - zero) *
           static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(scale) << 16));
  }
};

class IntPackingTest : public testing::TestWithParam<const char*> {};

TEST_P(IntPackingTest, EveryWeightIsWhereItsThreadReadsIt) {
  const auto scheme = make_scheme(GetParam());
  const CudaScheme* served = find_scheme(*scheme, small_layer());
  ASSERT_NE(served, nullptr);
  const IntFormat format = *served->integers;
  for (const Role role : {Role::w13, Role::w2}) {
    const MatrixShape shape = weight_shape(small_layer(), role);
    std::vector<float> original(static_cast<std::size_t>(shape.rows * shape.cols));
    for (std::size_t i = 0; i < original.size(); ++i)
      original[i] = std::ldexp(static_cast<float>((i * 2654435761u >> 7) % 511) - 255.0f, -8);
    MatrixStorage canonical(*scheme, shape);
    scheme->quantize_weight(original, canonical.view());
    std::vector<double> expected(original.size());
    scheme->dequantize_weight(std::as_const(canonical).view(), 0, shape.rows, expected);

    std::vector<std::int32_t> columns, rows;
    if (format.ordered) {
      std::vector<std::int32_t> group_of(static_cast<std::size_t>(shape.cols));
      std::memcpy(group_of.data(), std::as_const(canonical).view().group_index.data(),
                  group_of.size() * 4);
      columns = *column_order(format, group_of);
      // As if w2's columns were stored backwards.
      for (int n = inter; role == Role::w13 && n > 0; --n) rows.push_back(n - 1);
    }
    std::vector<std::byte> packed(packed_bytes(format, shape), std::byte{0xee});
    pack_integers(format, std::as_const(canonical).view(), {.rows = rows, .columns = columns},
                  packed);

    const bool gate_up = role == Role::w13;
    const std::int64_t limit = gate_up ? inter : shape.rows, steps = (shape.cols + 127) / 128;
    const std::int64_t tiles = gate_up ? (inter + 127) / 128 : (shape.rows + 255) / 256;
    ASSERT_EQ(packed.size(), static_cast<std::size_t>(tiles * steps) * chunk_bytes(format));
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      for (std::int64_t step = 0; step < steps; ++step) {
        const auto begin = static_cast<std::size_t>(tile * steps + step) * chunk_bytes(format);
        const Reader chunk = {
            format, std::span<const std::byte>(packed).subspan(begin, chunk_bytes(format))};
        for (int r = 0; r < 256; ++r) {
          for (int c = 0; c < 128; ++c) {
            const std::int64_t place = step * 128 + c;
            std::int64_t row = gate_up ? tile * 128 + r % 128 : tile * 256 + r;
            double weight = 0;
            if (row < limit && place < shape.cols) {
              if (!rows.empty()) row = rows[static_cast<std::size_t>(row)];
              if (gate_up && r >= 128) row += inter;
              const std::int64_t column =
                  columns.empty() ? place : columns[static_cast<std::size_t>(place)];
              weight = expected[static_cast<std::size_t>(row * shape.cols + column)];
            }
            ASSERT_EQ(chunk.weight(r, c), weight)
                << "tile " << tile << " step " << step << " row " << r << " column " << c;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, IntPackingTest,
                         testing::Values("w4a16_g128", "w4a16_g64_zp", "w4a16_g32_zp_actorder",
                                         "w4a16_channel_zp", "w8a16_g128_zp_actorder", "w8a16_g32",
                                         "w8a16_channel", "mxfp4"),
                         [](const auto& named) { return std::string(named.param); });

TEST(ColumnOrder, IsStableByGroup) {
  const IntFormat format = {.group = 2, .ordered = true};
  const std::vector<std::int32_t> group_of = {1, 0, 2, 1, 0};
  const auto order = column_order(format, group_of);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(*order, (std::vector<std::int32_t>{1, 4, 0, 3, 2}));
}

TEST(ColumnOrder, RefusesGroupsOfOtherSizesWithTheNumbers) {
  const IntFormat format = {.group = 2, .ordered = true};
  const std::vector<std::int32_t> group_of = {0, 1, 1, 1};
  const auto order = column_order(format, group_of);
  ASSERT_FALSE(order.has_value());
  EXPECT_EQ(order.error(),
            "group_index puts other than 2 columns into group 0 of 2; the cuda kernels need all "
            "groups full but the last");
}

}  // namespace
}  // namespace moegauge::cuda
