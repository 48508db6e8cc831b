#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/op_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Bits = std::vector<std::uint16_t>;
using Codes = std::vector<std::uint8_t>;

Layer layer(std::int64_t k) {
  return {.experts = 1, .top_k = 1, .hidden_size = k, .intermediate_size = 32};
}

// One token of 1, 2, -7, 0 in bf16.
const Bits kX = {0x3F80, 0x4000, 0xC0E0, 0x0000};

template <typename Scale>
OpErrors judged(std::string_view scheme, const Codes& q, const std::vector<Scale>& scale) {
  const OpProblem p = op_problem("quantize", layer(4), scheme, 1);
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "x", kX)};
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "q", q),
                                       tensor_of(p.outputs, "scale", scale)};
  return op_named("quantize").truth(p, {}, inputs, nullptr, 1)->judge(outputs);
}

// scale = 7 / 448 = 2^-6. 1, 2, -7 over it: 64 = 0x68 (2^6: exponent 6 + 7 = 13), 128 = 0x70,
// -448 = 0xFE.
TEST(Quantize, MapsTheLargestMagnitudeToTheFormatsMaximum) {
  for (const char* scheme : {"fp8_block", "fp8_ptpc", "fp8_tensor"}) {
    const OpErrors errors = judged<float>(scheme, {0x68, 0x70, 0xFE, 0x00}, {0x1p-6f});
    EXPECT_FALSE(errors.wrong) << scheme << ": " << *errors.wrong;
    EXPECT_EQ(errors.implementation.relative_l2, 0) << scheme;
    EXPECT_EQ(errors.quantization.relative_l2, 0) << scheme << ": all four values are held";
  }
}

// Bias 8 and maximum 240: scale = 7 / 240; 1 / scale = 34.28571, between 34 and 36 (steps of 4 from
// 32: 32, 36) -> 36 = 2^5 * 1.125 = 0x69; 2: 68.57 -> 72 = 0x71; -240 = 0xFF.
TEST(Quantize, KnowsTheOtherFlavour) {
  const OpErrors errors = judged<float>("fp8_ptpc_fnuz", {0x69, 0x71, 0xFF, 0x00}, {7.0f / 240.0f});
  EXPECT_FALSE(errors.wrong) << *errors.wrong;
  EXPECT_GT(errors.quantization.relative_l2, 0.001);
}

// ceil(log2(7 / 448)) = -6: code 121, and the same codes as above. floor(log2(7)) = 2: code 129;
// 0.25 = 0x28, 0.5 = 0x30, -1.75 = 0xBE.
TEST(Quantize, KeepsPowersOfTwoAsE8m0) {
  EXPECT_FALSE(judged<std::uint8_t>("mxfp8", {0x68, 0x70, 0xFE, 0x00}, {121}).wrong);
  EXPECT_FALSE(judged<std::uint8_t>("mxfp8_floor", {0x28, 0x30, 0xBE, 0x00}, {129}).wrong);
  EXPECT_THAT(judged<std::uint8_t>("mxfp8", {0x68, 0x70, 0xFE, 0x00}, {122}).wrong.value_or(""),
              ::testing::HasSubstr("scale[0]"));
}

// scale = 7 / 127; 1 / scale = 18.14 -> 18, 36.29 -> 36, -127.
TEST(Quantize, KnowsInt8) {
  EXPECT_FALSE(judged<float>("w8a8_int8", {18, 36, 0x81, 0}, {7.0f / 127.0f}).wrong);
  EXPECT_TRUE(judged<float>("w8a8_int8", {18, 37, 0x81, 0}, {7.0f / 127.0f}).wrong);
}

TEST(Quantize, AllowsTheLastPlaceOfAScaleAndNoMore) {
  const Codes q = {0x68, 0x70, 0xFE, 0x00};
  EXPECT_FALSE(judged<float>("fp8_ptpc", q, {0x1.000002p-6f}).wrong);
  EXPECT_TRUE(judged<float>("fp8_ptpc", q, {0x1.00001p-6f}).wrong);
}

// 1.0625 halfway between the codes of 1 and 1.125, under scale 1 (amax 448): both are right, and
// the next one is not.
TEST(Quantize, LetsATieFallEitherWay) {
  const OpProblem p = op_problem("quantize", layer(2), "fp8_ptpc", 1);
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "x", Bits{0x3F88, 0x43E0})};
  const auto truth = op_named("quantize").truth(p, {}, inputs, nullptr, 1);
  const auto wrong = [&](std::uint8_t code) {
    const std::vector<Tensor> outputs = {tensor_of(p.outputs, "q", Codes{code, 0x7E}),
                                         tensor_of(p.outputs, "scale", std::vector<float>{1.0f})};
    return truth->judge(outputs).wrong.has_value();
  };
  EXPECT_FALSE(wrong(0x38));  // 1
  EXPECT_FALSE(wrong(0x39));  // 1.125
  EXPECT_TRUE(wrong(0x3A));
}

// amax of 2 over 448: 2 is the maximum, a NaN stays one of either sign, infinity saturates.
TEST(Quantize, TakesAnyNanForANanAndSaturatesInfinity) {
  const OpProblem p = op_problem("quantize", layer(3), "fp8_tensor", 1);
  const auto wrong = [&](std::uint16_t x, std::uint8_t code) {
    const std::vector<Tensor> inputs = {tensor_of(p.inputs, "x", Bits{0x4000, x, 0})};
    const std::vector<Tensor> outputs = {
        tensor_of(p.outputs, "q", Codes{0x7E, code, 0}),
        tensor_of(p.outputs, "scale", std::vector<float>{2.0f / 448})};
    return op_named("quantize").truth(p, {}, inputs, nullptr, 1)->judge(outputs).wrong.value_or("");
  };
  EXPECT_EQ(wrong(0x7FC0, 0x7F), "");
  EXPECT_EQ(wrong(0x7FC0, 0xFF), "");
  EXPECT_NE(wrong(0x7FC0, 0x7E), "");
  EXPECT_EQ(wrong(0x7F80, 0x7E), "");
  EXPECT_EQ(wrong(0xFF80, 0xFE), "");
  EXPECT_NE(wrong(0x7F80, 0x7F), "");
}

TEST(Quantize, TakesACalibratedScaleAsItIs) {
  const OpProblem p = op_problem("quantize", layer(4), "fp8_tensor_static", 1);
  const std::vector<Tensor> inputs = {tensor_of(p.inputs, "x", kX),
                                      tensor_of(p.inputs, "x_scale", std::vector<float>{0x1p-5f})};
  const auto truth = op_named("quantize").truth(p, {}, inputs, nullptr, 1);
  // 32 = 0x60, 64 = 0x68, -224 = 0xF6.
  const std::vector<Tensor> outputs = {tensor_of(p.outputs, "q", Codes{0x60, 0x68, 0xF6, 0x00}),
                                       tensor_of(p.outputs, "scale", std::vector<float>{0x1p-5f})};
  EXPECT_FALSE(truth->judge(outputs).wrong);
}

TEST(Quantize, IsNotDefinedWhereActivationsStayAsTheyAre) {
  OpProblem p;
  p.op = "quantize";
  p.layer = layer(4);
  p.scheme = make_scheme("w4a16_g128");
  EXPECT_THAT(op_named("quantize").describe(p).value_or(""), ::testing::HasSubstr("w4a16_g128"));
}

// The schemes' own emulation (reference/schemes), which the oracle of whole layers uses.
TEST(Quantize, AgreesWithWhatTheSchemeSaysThatKernelsSee) {
  for (const char* name :
       {"fp8_tensor", "fp8_ptpc", "fp8_block", "fp8_block_fnuz224", "mxfp8", "w8a8_int8"}) {
    const OpProblem p = op_problem("quantize", layer(320), name, 7);
    const auto inputs =
        op_named("quantize").draw_inputs(p, {.distribution = Distribution::heavy_tail, .seed = 5});
    const std::vector<double> wide = decoded(inputs[0]);
    const std::vector<float> x(wide.begin(), wide.end());
    std::vector<double> emulated(x.size());
    p.scheme->emulate_activation(x, {7, 320, Dtype::bf16, 0}, emulated);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      difference += (emulated[i] - x[i]) * (emulated[i] - x[i]);
      size += x[i] * x[i];
    }
    auto outputs = make_tensors(p.outputs);
    const auto truth = op_named("quantize").truth(p, {}, inputs, nullptr, 1);
    EXPECT_NEAR(truth->judge(outputs).quantization.relative_l2, std::sqrt(difference / size), 1e-12)
        << name;
  }
}

}  // namespace
}  // namespace moegauge
