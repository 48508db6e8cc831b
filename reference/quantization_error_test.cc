#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reference/error.h"
#include "reference/gemm/gemm.h"
#include "reference/oracle.h"
#include "reference/oracle_testing.h"

namespace moegauge {
namespace {

using namespace testing_support;
using Doubles = std::vector<double>;

// E4M3 rounds a value to 4 significant bits: a relative error uniform within half a step of values
// spread over a binade, 0.026 rms. Products of two such operands, summed, keep sqrt(2) of it:
// 0.037.
TEST(QuantizationError, OfOneFp8GemmOfGaussianDataIs0037) {
  const auto scheme = make_scheme("fp8_block");
  const std::int64_t m = 64, n = 256, k = 1024;
  const auto x = random_values(m * k, 1), w = random_values(n * k, 2);
  const Doubles exact_x(x.begin(), x.end()), exact_w(w.begin(), w.end());
  const Doubles seen_x = emulate(*scheme, x, {.rows = m, .cols = k});
  const Doubles seen_w = dequantize(*scheme, quantize(*scheme, {Role::w2, n, k}, w));
  Doubles exact(static_cast<std::size_t>(m * n)), seen(exact.size());
  const Gemm& gemm = Gemm::best();
  gemm.multiply({exact_x.data(), m, k, k}, {exact_w.data(), n, k, k}, {exact.data(), m, n, n});
  gemm.multiply({seen_x.data(), m, k, k}, {seen_w.data(), n, k, k}, {seen.data(), m, n, n});
  const auto error = measure_error(seen, exact, Doubles(exact.size(), 1), m, n, {}, Dtype::bf16);
  EXPECT_NEAR(error.relative_l2, 0.037, 0.002);
}

TEST(QuantizationError, OfAWholeFp8LayerOfGaussianDataIs006) {
  const Layer layer = layer_of(4, 2, 512, 384);
  const auto scheme = make_scheme("fp8_block");
  const Truth truth = truth_of(layer, *scheme, HeldExperts::random(layer, *scheme, 5),
                               HeldInputs::random(layer, 64, 6));
  const auto error =
      measure_error(truth.emulated, truth.unquantized, truth.magnitude, 64, 512, {}, Dtype::bf16);
  EXPECT_NEAR(error.relative_l2, 0.06, 0.005);
  EXPECT_EQ(error.non_finite, 0);
}

// y is rounded to bf16 once: half a step of 2^-8 at most, about 2^-9 / sqrt(3) * 1.4 rms.
TEST(QuantizationError, OfBf16IsTheRoundingOfHAndY) {
  const Layer layer = layer_of(4, 2, 512, 384);
  const auto scheme = make_scheme("bf16");
  const Truth truth = truth_of(layer, *scheme, HeldExperts::random(layer, *scheme, 5),
                               HeldInputs::random(layer, 64, 6));
  const auto error =
      measure_error(truth.emulated, truth.unquantized, truth.magnitude, 64, 512, {}, Dtype::bf16);
  EXPECT_GT(error.relative_l2, 0.001);
  EXPECT_LT(error.relative_l2, 0.004);
  EXPECT_LE(error.max_scaled, 0x1p-7);
}

}  // namespace
}  // namespace moegauge
