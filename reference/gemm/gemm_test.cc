#include "reference/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

namespace moegauge {
namespace {

std::vector<double> random_values(std::int64_t n, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(static_cast<std::size_t>(n));
  // Uniform in [-1, 1), from the engine's own bits: the same on every machine.
  for (double& v : values) v = static_cast<double>(static_cast<std::int64_t>(engine())) * 0x1p-63;
  return values;
}

struct Case {
  std::int64_t m, n, k;
};
constexpr Case kShapes[] = {{1, 1, 1},    {1, 7, 5},     {5, 1, 9},      {3, 4, 0},
                            {17, 33, 65}, {64, 80, 192}, {250, 400, 37}, {1, 513, 300}};

class EveryInstructionSet : public testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!processor_has(GetParam()))
      GTEST_SKIP() << "this processor has no " << to_string(GetParam());
  }
  Gemm gemm() {
    auto opened = Gemm::open(GetParam());
    if (!opened) throw std::runtime_error(opened.error());
    return *opened;
  }
};

TEST_P(EveryInstructionSet, AgreesWithALongDoubleTripleLoop) {
  ThreadPool pool(2);
  for (const auto& [m, n, k] : kShapes) {
    const auto a = random_values(m * k, 1), b = random_values(n * k, 2);
    std::vector<double> c(static_cast<std::size_t>(m * n), -1.0);
    gemm().multiply({a.data(), m, k, k}, {b.data(), n, k, k}, {c.data(), m, n, n}, pool);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        long double sum = 0, magnitude = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const long double product =
              static_cast<long double>(a[static_cast<std::size_t>(i * k + l)]) *
              b[static_cast<std::size_t>(j * k + l)];
          sum += product;
          magnitude += std::fabs(product);
        }
        // Any order of summation stays within k ulps of the sum of magnitudes.
        EXPECT_NEAR(c[static_cast<std::size_t>(i * n + j)], static_cast<double>(sum),
                    static_cast<double>(magnitude) * static_cast<double>(k + 1) * 0x1p-53)
            << m << "x" << n << "x" << k << " at " << i << "," << j;
      }
    }
  }
}

TEST_P(EveryInstructionSet, ReadsAndWritesThroughStridesAndTouchesNothingBetween) {
  const std::vector<double> a = {1, 2, 99, 3, 4, 99};  // [2, 2] stride 3
  const std::vector<double> b = {5, 6, 99, 99, 7, 8};  // [2, 2] stride 4
  std::vector<double> c(10, -1.0);                     // [2, 2] stride 5
  gemm().multiply({a.data(), 2, 2, 3}, {b.data(), 2, 2, 4}, {c.data(), 2, 2, 5});
  EXPECT_EQ(c, (std::vector<double>{17, 23, -1, -1, -1, 39, 53, -1, -1, -1}));
}

TEST_P(EveryInstructionSet, GivesTheSameBitsForAnyNumberOfThreads) {
  const std::int64_t m = 500, n = 900, k = 131;
  const auto a = random_values(m * k, 3), b = random_values(n * k, 4);
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    results.emplace_back(static_cast<std::size_t>(m * n));
    gemm().multiply({a.data(), m, k, k}, {b.data(), n, k, k}, {results.back().data(), m, n, n},
                    pool);
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
}

TEST_P(EveryInstructionSet, KeepsANanRowToItself) {
  const std::int64_t m = 40, n = 50, k = 60;
  auto a = random_values(m * k, 5);
  const auto b = random_values(n * k, 6);
  std::vector<double> clean(static_cast<std::size_t>(m * n)), dirty(clean.size());
  gemm().multiply({a.data(), m, k, k}, {b.data(), n, k, k}, {clean.data(), m, n, n});
  a[static_cast<std::size_t>(7 * k + 3)] = std::nan("");
  gemm().multiply({a.data(), m, k, k}, {b.data(), n, k, k}, {dirty.data(), m, n, n});
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if (static_cast<std::int64_t>(i) / n == 7) {
      EXPECT_TRUE(std::isnan(dirty[i]));
    } else {
      EXPECT_EQ(dirty[i], clean[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gemm, EveryInstructionSet,
                         testing::Values(InstructionSet::portable, InstructionSet::avx2,
                                         InstructionSet::avx512),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST(Gemm, BestIsTheWidestSetOfThisProcessor) {
  const InstructionSet widest = processor_has(InstructionSet::avx512) ? InstructionSet::avx512
                                : processor_has(InstructionSet::avx2) ? InstructionSet::avx2
                                                                      : InstructionSet::portable;
  EXPECT_EQ(Gemm::best().instruction_set(), widest);
}

TEST(Gemm, SaysWhichFileIsMissing) {
  const auto opened = Gemm::open(InstructionSet::portable, "/nonexistent");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().find("/nonexistent/moegauge_gemm_portable.so"), std::string::npos)
      << opened.error();
}

}  // namespace
}  // namespace moegauge
