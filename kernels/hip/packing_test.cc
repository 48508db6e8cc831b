// Where an element of a weight matrix lies when it is packed, by the words of device/layer_args.h
// put into a formula here once more.
#include "kernels/hip/packing.h"

#include <gtest/gtest.h>

#include <cstring>

#include "reference/formats/fp8.h"
#include "reference/schemes/matrix_storage.h"

namespace moegauge::hip {
namespace {

constexpr Architecture ocp = {.name = "ocp", .lanes = 64, .mfma = true, .shared_bytes = 65536};
constexpr Architecture fnuz = {
    .name = "fnuz", .lanes = 64, .mfma = true, .fnuz = true, .shared_bytes = 65536};

struct Packed {
  Problem problem;
  LayerFormat format;
  MatrixStorage canonical;
  std::vector<std::byte> values;
  std::vector<float> scales;

  Packed(const char* scheme, const Layer& layer, Role role, const Architecture& architecture)
      : problem{layer, std::shared_ptr<const Scheme>(make_scheme(scheme)), 0},
        format(*format_of(problem, architecture)),
        canonical(*problem.scheme, weight_shape(layer, role)) {
    const MatrixShape shape = weight_shape(layer, role);
    std::vector<float> w(static_cast<std::size_t>(shape.rows * shape.cols));
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] = static_cast<float>(static_cast<int>(i * 2654435761u % 1000) - 500) / 100.0f;
    problem.scheme->quantize_weight(w, canonical.view());
    const PackedShape packed = packed_shape(layer, format, role);
    values.assign(packed.values, std::byte{0xee});
    scales.assign(packed.scales, -1.0f);
    pack(layer, *problem.scheme, format, std::as_const(canonical).view(), values, scales);
  }

  // Byte `b` of packed row `row`.
  std::byte at(std::int64_t row, std::int64_t b, std::int64_t steps) const {
    const std::int64_t tile = row / 16, step = b / 128, chunk = b % 128 / 16;
    const std::int64_t place = ((tile * steps + step) * 8 + chunk) * 256 + row % 16 * 16 + b % 16;
    return values.at(static_cast<std::size_t>(place));
  }
  std::byte source(std::int64_t row, std::int64_t b, std::int64_t row_bytes) const {
    return std::as_const(canonical).view().values[static_cast<std::size_t>(row * row_bytes + b)];
  }
  float source_scale(std::size_t i) const {
    float s;
    std::memcpy(&s, std::as_const(canonical).view().scales.data() + i * sizeof s, sizeof s);
    return s;
  }
};

const Layer small = {.experts = 2, .top_k = 1, .hidden_size = 296, .intermediate_size = 176};

TEST(Packing, PutsGateRowsThenUpRowsInTilesOf16By128Bytes) {
  for (const GateUpOrder order : {GateUpOrder::concatenated, GateUpOrder::interleaved}) {
    Layer layer = small;
    layer.gate_up_order = order;
    const Packed p("bf16", layer, Role::w13, ocp);
    // 176 rows padded to 256 each; 592 bytes padded to 5 steps.
    ASSERT_EQ(p.values.size(), 512u * 5 * 128);
    for (std::int64_t row = 0; row < 512; ++row) {
      const std::int64_t up = row / 256, n = row % 256;
      const std::int64_t source = order == GateUpOrder::interleaved ? 2 * n + up : up * 176 + n;
      for (std::int64_t b = 0; b < 640; ++b) {
        const std::byte expected = n < 176 && b < 592 ? p.source(source, b, 592) : std::byte{0};
        ASSERT_EQ(p.at(row, b, 5), expected) << "row " << row << ", byte " << b;
      }
    }
  }
}

TEST(Packing, GivesEachTileTheScaleOfItsBlock) {
  const Packed w13("fp8_block", small, Role::w13, ocp);
  // 352 rows are 3 lines of 3 blocks; up rows begin at 176, inside the second line.
  ASSERT_EQ(w13.scales.size(), 32u * 3);
  for (std::size_t tile = 0; tile < 32; ++tile) {
    const std::size_t up = tile / 16, n = tile % 16 * 16;
    for (std::size_t step = 0; step < 3; ++step) {
      const float expected = n < 176 ? w13.source_scale((up * 176 + n) / 128 * 3 + step) : 0.0f;
      EXPECT_EQ(w13.scales[tile * 3 + step], expected) << "tile " << tile;
    }
  }
}

TEST(Packing, TurnsOcpIntoFnuzWithoutChangingAnyValue) {
  const Packed as_is("fp8_ptpc", small, Role::w2, ocp), halved("fp8_ptpc", small, Role::w2, fnuz);
  for (std::size_t i = 0; i < as_is.values.size(); ++i) {
    const float before = e4m3fn_to_float(std::to_integer<std::uint8_t>(as_is.values[i]));
    const float after = e4m3fnuz_to_float(std::to_integer<std::uint8_t>(halved.values[i]));
    ASSERT_EQ(before, 2 * after);
  }
  for (std::size_t i = 0; i < as_is.scales.size(); ++i)
    ASSERT_EQ(halved.scales[i], 2 * as_is.scales[i]);
  EXPECT_EQ(halved.format.maximum, 224.0f);
}

TEST(Packing, RefusesBlocksWhoseEdgeCutsATile) {
  Layer layer = small;
  layer.intermediate_size = 184;
  const Problem problem = {layer, std::shared_ptr<const Scheme>(make_scheme("fp8_block")), 0};
  const auto why = straddles(layer, *format_of(problem, ocp));
  ASSERT_TRUE(why.has_value());
  EXPECT_NE(why->find("184"), std::string::npos);
  const Problem channels = {layer, std::shared_ptr<const Scheme>(make_scheme("fp8_ptpc")), 0};
  EXPECT_FALSE(straddles(layer, *format_of(channels, ocp)).has_value());
}

}  // namespace
}  // namespace moegauge::hip
