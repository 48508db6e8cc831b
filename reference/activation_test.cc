#include "reference/activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace moegauge {
namespace {

constexpr ActivationKind kAll[] = {ActivationKind::silu_and_mul, ActivationKind::gelu_and_mul,
                                   ActivationKind::gelu_tanh_and_mul,
                                   ActivationKind::swiglu_clamped};

// Expected values: the formulas of layer.h in 30 decimal digits (mpmath).
TEST(Activation, SiluIsGateTimesItsSigmoid) {
  const Activation silu = {.kind = ActivationKind::silu_and_mul};
  EXPECT_DOUBLE_EQ(activate(silu, 1.0, 2.0), 2.0 * 0.73105857863000487925);
  EXPECT_DOUBLE_EQ(activate(silu, -2.0, 3.0), 3.0 * -0.23840584404423511188);
  EXPECT_EQ(activate(silu, 0.0, 5.0), 0.0);
  EXPECT_EQ(activate(silu, -1000.0, 5.0), 0.0);  // exp overflows, the sigmoid is 0
  EXPECT_EQ(activate(silu, 1000.0, 5.0), 5000.0);
}

TEST(Activation, GeluUsesTheNormalDistribution) {
  const Activation gelu = {.kind = ActivationKind::gelu_and_mul};
  EXPECT_DOUBLE_EQ(activate(gelu, 1.0, 1.0), 0.84134474606854294859);
  EXPECT_DOUBLE_EQ(activate(gelu, -1.0, 2.0), 2.0 * -0.15865525393145705141);
  // Far in the tail 1 + erf would cancel to nothing: Phi(-10) = 7.6198530241605260660e-24.
  EXPECT_NEAR(activate(gelu, -10.0, 1.0) / -7.6198530241605260660e-23, 1.0, 1e-13);
}

TEST(Activation, GeluTanhIsTheApproximationAndNotGelu) {
  const Activation gelu_tanh = {.kind = ActivationKind::gelu_tanh_and_mul};
  EXPECT_NEAR(activate(gelu_tanh, 1.0, 1.0), 0.84119199060827670479, 1e-15);
  EXPECT_NEAR(activate(gelu_tanh, -1.0, 1.0), -0.15880800939172329521, 1e-15);
}

TEST(Activation, SwigluClampsGateAboveOnlyAndUpOnBothSides) {
  const Activation swiglu = {.kind = ActivationKind::swiglu_clamped};
  const auto swish = [](double g) { return g / (1.0 + std::exp(-1.702 * g)); };
  EXPECT_DOUBLE_EQ(activate(swiglu, 100.0, 100.0), 8.0 * swish(7.0));
  EXPECT_DOUBLE_EQ(activate(swiglu, 1.0, -100.0), -6.0 * swish(1.0));
  EXPECT_DOUBLE_EQ(activate(swiglu, -9.0, 0.5), 1.5 * swish(-9.0));
  EXPECT_EQ(activate(swiglu, 3.0, -1.0), 0.0);  // beta cancels up
}

TEST(Activation, SwigluReadsItsThreeParameters) {
  const Activation swiglu = {
      .kind = ActivationKind::swiglu_clamped, .alpha = 0.5, .beta = 3.0, .limit = 2.0};
  // min(4, 2) = 2, clamp(-5) = -2: (-2 + 3) * 2 / (1 + e^-1).
  EXPECT_DOUBLE_EQ(activate(swiglu, 4.0, -5.0), 2.0 * 0.73105857863000487925);
}

TEST(Activation, KeepsANan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto kind : kAll) {
    EXPECT_TRUE(std::isnan(activate({.kind = kind}, nan, 1.0)));
    EXPECT_TRUE(std::isnan(activate({.kind = kind}, 1.0, nan)));
  }
}

}  // namespace
}  // namespace moegauge
