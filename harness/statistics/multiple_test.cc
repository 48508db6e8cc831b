#include "harness/statistics/multiple.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace moegauge {
namespace {

// The example of Benjamini and Hochberg (1995), section 3.2: 15 comparisons of Neuhaus et al., of
// which their procedure rejects four at 0.05 where Bonferroni's rejects three.
TEST(BenjaminiHochberg, RejectsFourInThePublishedExample) {
  const std::vector<double> p = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
  const std::vector<double> adjusted = benjamini_hochberg(p);
  EXPECT_EQ(std::ranges::count_if(adjusted, [](double q) { return q <= 0.05; }), 4);
  // By hand: p * 15 / rank, and never above that of a larger p: 0.0278 * 15 / 6 is, so that it
  // takes 0.0298 * 15 / 7.
  EXPECT_NEAR(adjusted[0], 0.0015, 1e-12);
  EXPECT_NEAR(adjusted[3], 0.0095 * 15 / 4, 1e-12);
  EXPECT_NEAR(adjusted[5], 0.0298 * 15 / 7, 1e-12);
  EXPECT_NEAR(adjusted[14], 1, 1e-12);
}

TEST(BenjaminiHochberg, KeepsTheOrderOfItsInput) {
  const std::vector<double> adjusted = benjamini_hochberg(std::vector<double>{0.9, 0.01, 0.02});
  EXPECT_NEAR(adjusted[0], 0.9, 1e-12);
  EXPECT_NEAR(adjusted[1], 0.03, 1e-12);
  EXPECT_NEAR(adjusted[2], 0.03, 1e-12);
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

}  // namespace
}  // namespace moegauge
