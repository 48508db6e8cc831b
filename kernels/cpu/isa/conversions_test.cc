// Every level's bulk conversions against the scalar formats, bit by bit.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/cpu/isa/level_testing.h"
#include "reference/formats/bf16.h"
#include "reference/formats/fp16.h"
#include "reference/formats/fp8.h"

namespace moegauge::cpu {
namespace {

class ConversionsTest : public LevelTest {};
INSTANTIATE_TEST_SUITE_P(Levels, ConversionsTest, testing::ValuesIn(supported_levels()),
                         level_name);

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  return bits;
}

TEST_P(ConversionsTest, WidensEveryHalfAsTheScalarFormatsDo) {
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

TEST_P(ConversionsTest, NarrowsAsTheScalarFormatsDo) {
  const std::vector<float> in = interesting_floats();
  const auto n = static_cast<std::int64_t>(in.size());
  std::vector<std::uint16_t> out(in.size());
  table().narrow(NarrowType::bf16, in.data(), n, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], float_to_bf16(in[i])) << in[i];
  table().narrow(NarrowType::fp16, in.data(), n, out.data());
  for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], float_to_fp16(in[i])) << in[i];
}

TEST_P(ConversionsTest, DecodesEveryFp8CodeAsTheScalarFormatsDo) {
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

TEST_P(ConversionsTest, EncodesFp8AsTheScalarFormatsDo) {
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

}  // namespace
}  // namespace moegauge::cpu
