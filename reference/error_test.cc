#include "reference/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace moegauge {
namespace {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

ErrorMetrics measure(const Values& a, const Values& b, std::int64_t cols,
                     const std::vector<std::int32_t>& pool = {}) {
  return measure_error(a, b, Values(b.size(), 1.0), static_cast<std::int64_t>(a.size()) / cols,
                       cols, pool, Dtype::bf16);
}

TEST(MeasureError, EqualOutputsHaveNoErrorAndNoBadIndex) {
  const auto m = measure({1, 2, 3, 4}, {1, 2, 3, 4}, 2);
  EXPECT_EQ(m.relative_l2, 0);
  EXPECT_EQ(m.worst_token, 0);
  EXPECT_EQ(m.max_scaled, 0);
  EXPECT_DOUBLE_EQ(m.cosine, 1);
  EXPECT_EQ(m.matched, 1);
  EXPECT_EQ(m.non_finite, 0);
  EXPECT_EQ(m.first_bad, std::nullopt);
}

// Rows (3, 4) -> (3, 5) and (6, 8) -> (9, 12). By hand: ||a-b||^2 = 1 + 9 + 16 = 26, ||b||^2 = 125;
// rows 1/5 and 5/10; cosine = (9 + 20 + 54 + 96) / sqrt(25 + 100) / sqrt(34 + 225).
TEST(MeasureError, MatchesANumberWorkedOutByHand) {
  const auto m = measure_error(Values{3, 5, 9, 12}, Values{3, 4, 6, 8}, Values{10, 4, 2, 8}, 2, 2,
                               {}, Dtype::bf16);
  EXPECT_DOUBLE_EQ(m.relative_l2, std::sqrt(26.0 / 125.0));
  EXPECT_DOUBLE_EQ(m.worst_token, 0.5);
  EXPECT_EQ(m.worst_token_row, 1);
  EXPECT_DOUBLE_EQ(m.max_scaled, 1.5);  // |9 - 6| / 2
  EXPECT_DOUBLE_EQ(m.cosine, 179.0 / std::sqrt(125.0 * 259.0));
  EXPECT_DOUBLE_EQ(m.matched, 0.25);
  EXPECT_EQ(m.first_bad, 2);  // row 1 starts here
}

TEST(MeasureError, SumsEveryColumnOfWideAndRaggedRows) {
  for (const std::int64_t cols : {1, 7, 8, 9, 64, 77}) {
    Values b(static_cast<std::size_t>(cols), 2.0), a = b;
    a.back() = 3.0;
    EXPECT_DOUBLE_EQ(measure(a, b, cols).relative_l2, 0.5 / std::sqrt(static_cast<double>(cols)));
    EXPECT_DOUBLE_EQ(measure(a, b, cols).max_scaled, 1.0);
  }
}

TEST(MeasureError, ComparesEachRowWithItsPoolRow) {
  EXPECT_EQ(measure({3, 4, 1, 2, 3, 4}, {1, 2, 3, 4}, 2, {1, 0, 1}).relative_l2, 0);
  const auto m = measure({3, 4, 1, 2, 3, 4}, {1, 2, 3, 4}, 2, {1, 0, 0});
  EXPECT_EQ(m.worst_token_row, 2);
  EXPECT_DOUBLE_EQ(m.worst_token, std::sqrt(8.0 / 5.0));
}

TEST(MeasureError, AllZeroReferenceIsMetByZerosAlone) {
  EXPECT_EQ(measure({0, -0.0}, {0, 0}, 2).relative_l2, 0);
  EXPECT_EQ(measure({0, 0}, {0, 0}, 2).cosine, 1);
  const auto m = measure_error(Values{0, 1e-30}, Values{0, 0}, Values{0, 0}, 1, 2, {}, Dtype::bf16);
  EXPECT_EQ(m.relative_l2, kInf);
  EXPECT_EQ(m.worst_token, kInf);
  EXPECT_EQ(m.max_scaled, kInf);
  EXPECT_EQ(m.cosine, 0);
}

TEST(MeasureError, AllZeroOutputIsNotCloseToAnything) {
  const auto m = measure({0, 0}, {3, 4}, 2);
  EXPECT_DOUBLE_EQ(m.relative_l2, 1);
  EXPECT_EQ(m.cosine, 0);
  EXPECT_EQ(m.matched, 0);
}

TEST(MeasureError, NonFiniteOutputsAreCountedAndMakeEveryDistanceInfinite) {
  const auto m = measure({1, 2, kNan, 4, kInf, 6}, {1, 2, 3, 4, 5, 6}, 2);
  EXPECT_EQ(m.non_finite, 2);
  EXPECT_EQ(m.first_bad, 2);
  EXPECT_EQ(m.relative_l2, kInf);
  EXPECT_EQ(m.worst_token, kInf);
  EXPECT_EQ(m.worst_token_row, 1);
  EXPECT_EQ(m.max_scaled, kInf);
  EXPECT_DOUBLE_EQ(m.matched, 4.0 / 6.0);
  EXPECT_TRUE(std::isfinite(m.cosine));
}

TEST(MeasureError, ANanTokenMustBeNanThroughout) {
  EXPECT_EQ(measure({1, 2, kNan, kNan}, {1, 2, kNan, kNan}, 2).relative_l2, 0);
  EXPECT_EQ(measure({1, 2, kNan, kNan}, {1, 2, kNan, kNan}, 2).non_finite, 0);
  const auto hidden = measure({1, 2, kNan, 0}, {1, 2, kNan, kNan}, 2);
  EXPECT_EQ(hidden.non_finite, 1);
  EXPECT_EQ(hidden.first_bad, 3);
  EXPECT_EQ(hidden.relative_l2, kInf);
  EXPECT_EQ(hidden.worst_token_row, 1);
}

ErrorMetrics measure_fp16(const Values& a, const Values& b,
                          const std::vector<std::uint8_t>& not_compared = {}) {
  return measure_error(a, b, Values(b.size(), 1.0), 1, static_cast<std::int64_t>(b.size()), {},
                       Dtype::fp16, not_compared);
}

TEST(MeasureError, RowsMarkedAsNotComparedAreLeftOutAndCounted) {
  const std::vector<std::uint8_t> first = {1, 0}, both = {1, 1};
  const auto left = [](const std::vector<std::uint8_t>& rows) {
    return measure_error(Values{7, kNan, 3, 4}, Values{kInf, 1, 3, 4}, Values(4, 1.0), 2, 2, {},
                         Dtype::bf16, rows);
  };
  EXPECT_EQ(left(first).rows, 1);
  EXPECT_EQ(left(first).relative_l2, 0);
  EXPECT_EQ(left(first).non_finite, 0);
  EXPECT_EQ(left(first).matched, 1);
  EXPECT_EQ(left(first).worst_token_row, 1);
  EXPECT_EQ(left(both).rows, 0);
}

// fp16's largest value is 65504, its step there 32: from 65520 on everything rounds to infinity.
TEST(MeasureError, AnOverflowOfTheOutputIsJudgedAndNotSkipped) {
  EXPECT_EQ(measure_fp16({kInf, 1}, {1e6, 1}).relative_l2, 0);
  EXPECT_EQ(measure_fp16({kInf, 1}, {1e6, 1}).matched, 1);
  EXPECT_EQ(measure_fp16({-kInf}, {-kInf}).relative_l2, 0);
  EXPECT_DOUBLE_EQ(measure_fp16({65504}, {1e6}).relative_l2, 16.0 / 65520) << "saturated";
  EXPECT_DOUBLE_EQ(measure_fp16({kInf}, {65504}).relative_l2, 16.0 / 65504) << "a rounding early";
  EXPECT_EQ(measure_fp16({kInf}, {65504}).non_finite, 0);
  EXPECT_EQ(measure_fp16({2}, {kInf}).rows, 1);
  EXPECT_NEAR(measure_fp16({2}, {kInf}).relative_l2, 1, 1e-4) << "65518 of 65520";
}

TEST(MeasureError, AnInfinityFarFromAnOverflowOrOfTheOtherSignIsNotFinite) {
  for (const double truth : {5.0, 60000.0, -1e6}) {
    const auto m = measure_fp16({kInf, 1}, {truth, 1});
    EXPECT_EQ(m.non_finite, 1) << truth;
    EXPECT_EQ(m.relative_l2, kInf) << truth;
    EXPECT_EQ(m.worst_token, kInf) << truth;
  }
  EXPECT_EQ(measure_fp16({kNan, 1}, {kInf, 1}).non_finite, 1);
}

TEST(MeasureError, BesideANanAnOverflowMayStand) {
  EXPECT_EQ(measure_fp16({kNan, kInf}, {kNan, kInf}).non_finite, 0);
  EXPECT_EQ(measure_fp16({kNan, kInf}, {kNan, 1}).non_finite, 1);
}

TEST(MeasureError, MatchedRoundsTheReferenceToTheOutputDtype) {
  // 1 + 2^-9 lies between the bf16 neighbours 1 and 1 + 2^-7, nearer to 1; fp16 holds it.
  const Values b = {1 + 0x1p-9}, magnitude = {1};
  EXPECT_EQ(measure_error(Values{1}, b, magnitude, 1, 1, {}, Dtype::bf16).matched, 1);
  EXPECT_EQ(measure_error(Values{1}, b, magnitude, 1, 1, {}, Dtype::fp16).matched, 0);
  EXPECT_EQ(measure_error(Values{1 + 0x1p-9}, b, magnitude, 1, 1, {}, Dtype::fp16).matched, 1);
}

TEST(MeasureError, NothingToCompareIsNoError) {
  const auto m = measure({}, {}, 4);
  EXPECT_EQ(m.relative_l2, 0);
  EXPECT_EQ(m.worst_token_row, -1);
}

// A row replaced by an independent one differs by sqrt(2) of its norm, and a zeroed one by 1 of it:
// among 8192 rows of equal norm 1 / sqrt(8192) = 0.01105. The total hides what worst_token shows.
TEST(MeasureError, OneBadRowAmong8192MovesTheTotalByOnePercentOnly) {
  constexpr std::int64_t rows = 8192, cols = 64;
  std::mt19937_64 engine(11);
  Values b(static_cast<std::size_t>(rows * cols));
  for (double& v : b) v = (engine() & 1u) != 0 ? 1.0 : -1.0;  // every row has norm 8
  Values a = b;
  for (std::size_t i = 0; i < cols; ++i) a[5000 * cols + i] = 0;
  const auto m = measure(a, b, cols);
  EXPECT_NEAR(m.relative_l2, 0.011, 0.0001);
  EXPECT_DOUBLE_EQ(m.relative_l2, 1 / std::sqrt(8192.0));
  EXPECT_DOUBLE_EQ(m.worst_token, 1);
  EXPECT_EQ(m.worst_token_row, 5000);
  EXPECT_EQ(m.first_bad, 5000 * cols);
}

}  // namespace
}  // namespace moegauge
