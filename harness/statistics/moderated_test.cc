#include "harness/statistics/moderated.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/statistics/noise_testing.h"

namespace moegauge {
namespace {

double chi_squared(TestRandom& random, int degrees_of_freedom) {
  double sum = 0;
  for (int i = 0; i < degrees_of_freedom; ++i) {
    const double z = random.normal();
    sum += z * z;
  }
  return sum;
}

// Drawn as the model says: true variances s0^2 d0 / chi^2(d0), samples of d degrees of freedom.
TEST(VariancePrior, RecoversTheDistributionThatVariancesWereDrawnFrom) {
  TestRandom random(3);
  std::vector<Variance> variances;
  for (int i = 0; i < 20000; ++i) {
    const double truth = 4.0 * 10 / chi_squared(random, 10);
    variances.push_back({truth * chi_squared(random, 6) / 6, 6});
  }
  const auto prior = fit_variance_prior(variances);
  ASSERT_TRUE(prior);
  EXPECT_NEAR(prior->value, 4, 0.15);
  EXPECT_NEAR(prior->degrees_of_freedom, 10, 1);
}

TEST(VariancePrior, OfEqualVariancesOutweighsEveryCase) {
  TestRandom random(4);
  std::vector<Variance> variances;
  for (int i = 0; i < 20000; ++i) variances.push_back({4 * chi_squared(random, 3) / 3, 3});
  const auto prior = fit_variance_prior(variances);
  ASSERT_TRUE(prior);
  EXPECT_NEAR(prior->value, 4, 0.3);
  EXPECT_GT(prior->degrees_of_freedom, 50);
}

TEST(VariancePrior, NeedsAVarianceWithDegreesOfFreedom) {
  EXPECT_FALSE(fit_variance_prior({}));
  EXPECT_FALSE(fit_variance_prior(std::vector<Variance>{{1, 0}, {std::nan(""), 4}}));
}

TEST(VariancePrior, IsNotSpoiltByACaseThatNeverMoved) {
  std::vector<Variance> variances(100, Variance{1, 5});
  variances.push_back({0, 5});
  EXPECT_GT(fit_variance_prior(variances)->value, 0.1);
}

TEST(ModeratedVariance, IsTheMeanWeightedByDegreesOfFreedom) {
  const Variance v = moderate({9, 2}, Variance{3, 4});
  EXPECT_NEAR(v.value, (4 * 3 + 2 * 9) / 6.0, 1e-12);
  EXPECT_EQ(v.degrees_of_freedom, 6);
  EXPECT_EQ(moderate({9, 2}, std::nullopt).value, 9);
  // A bounded prior leaves the case a say: (8 * 3 + 2 * 9) / 10.
  EXPECT_NEAR(moderate({9, 2}, Variance{3, HUGE_VAL}, 8).value, 4.2, 1e-12);
}

}  // namespace
}  // namespace moegauge
