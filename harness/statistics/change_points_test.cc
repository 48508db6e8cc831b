#include "harness/statistics/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace moegauge {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Uniform in [-1, 1), the same everywhere.
std::vector<double> noise(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  return values;
}

void add_from(std::vector<double>& values, std::size_t at, double step) {
  for (std::size_t i = at; i < values.size(); ++i) values[i] += step;
}

TEST(ChangePoints, OfALevelThatRoseStandAtItsFirstValue) {
  std::vector<double> values = noise(60, 1);
  add_from(values, 40, 10);  // beyond all noise, so that the place is certain
  const auto found = change_points(values);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].at, 40u);
  EXPECT_EQ(found[0].p, 0.001);  // none of 999 orders: 1 / 1000
}

TEST(ChangePoints, AreFoundOneInsideTheOther) {
  std::vector<double> values = noise(90, 2);
  add_from(values, 30, 10);
  add_from(values, 60, -5);
  const auto found = change_points(values);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].at, 30u);
  EXPECT_EQ(found[1].at, 60u);
}

TEST(ChangePoints, AreNoneInNoiseShortOrConstantSeries) {
  EXPECT_THAT(change_points(noise(200, 3)), IsEmpty());
  EXPECT_THAT(change_points({}), IsEmpty());
  EXPECT_THAT(change_points(noise(9, 3)), IsEmpty());
  EXPECT_THAT(change_points(std::vector<double>(100, 7.0)), IsEmpty());
}

TEST(ChangePoints, AreNotMadeByASingleOutlierHoweverFar) {
  for (const std::size_t at : {0, 1, 50, 98, 99}) {
    std::vector<double> values = noise(100, 4);
    values[at] = 1e12;
    EXPECT_THAT(change_points(values), IsEmpty()) << at;
  }
}

TEST(ChangePoints, AreNotHiddenByOne) {
  std::vector<double> values = noise(60, 5);
  add_from(values, 40, 3);
  values[10] = 1e12;
  const auto found = change_points(values);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].at, 40u);
}

TEST(ChangePoints, OfASeriesThatNeverMovedButOnceAreFound) {
  std::vector<double> values(40, 0.001);  // as errors are: the same in every run
  add_from(values, 30, 0.0001);
  const auto found = change_points(values);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].at, 30u);
}

TEST(ChangePoints, OfALongSeriesAreFoundOnceWhereverWindowsMeet) {
  for (const std::size_t at : {200, 374, 375, 376, 500, 620, 900, 1090}) {
    std::vector<double> values = noise(1100, 6);
    add_from(values, at, 10);
    const auto found = change_points(values);
    ASSERT_THAT(found, SizeIs(1)) << at;
    EXPECT_EQ(found[0].at, at);
  }
}

TEST(ChangePoints, AreTheSameEveryTime) {
  std::vector<double> values = noise(300, 7);
  add_from(values, 100, 0.4);
  const auto first = change_points(values), second = change_points(values);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].at, second[i].at);
    EXPECT_EQ(first[i].p, second[i].p);
  }
}

}  // namespace
}  // namespace moegauge
