// Every level's activation functions against the C library.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/cpu/isa/level_testing.h"

namespace moegauge::cpu {
namespace {

class ActivationsTest : public LevelTest {};
INSTANTIATE_TEST_SUITE_P(Levels, ActivationsTest, testing::ValuesIn(supported_levels()),
                         level_name);

TEST_P(ActivationsTest, ComputesActivationsToFp32Accuracy) {
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

TEST_P(ActivationsTest, GivesExactActivationsWhereTheFunctionSaturates) {
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

TEST_P(ActivationsTest, CarriesNanThroughEveryActivation) {
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

}  // namespace
}  // namespace moegauge::cpu
