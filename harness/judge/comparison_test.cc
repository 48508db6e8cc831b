#include "harness/judge/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/fake_result.h"

namespace moegauge {
namespace {

using testing::HasSubstr;

Policy policy() {
  return {.name = "test",
          .confidence = 0.95,
          .latency = {{.ratio_limit = 1.05, .between_runs = 0.014, .floor_us = 0.5}},
          .error = {{.growth_limit = 1.03, .growth_floor = 1e-6}}};
}

TEST(Classify, TellsFourOutcomesApart) {
  EXPECT_EQ(classify({1.10, 1.08, 1.12}, 1.05), Change::slower);
  EXPECT_EQ(classify({0.90, 0.88, 0.92}, 1.05), Change::faster);
  EXPECT_EQ(classify({1.00, 0.97, 1.03}, 1.05), Change::same);
  EXPECT_EQ(classify({1.02, 0.98, 1.06}, 1.05), Change::inconclusive);
}

TEST(Classify, IsTheSameFromEitherSide) {
  EXPECT_EQ(classify({1 / 1.10, 1 / 1.12, 1 / 1.08}, 1.05), Change::faster);
  EXPECT_EQ(classify({1 / 1.02, 1 / 1.06, 1 / 0.98}, 1.05), Change::inconclusive);
}

TEST(Classify, CallsASureButTinyDifferenceTheSame) {
  EXPECT_EQ(classify({1.003, 1.002, 1.004}, 1.01), Change::same);
}

TEST(Compare, GivesTheRatioOfBOverA) {
  Result b = fake_result();
  for (CaseRecord& record : b.cases) scale_latency(record, 1.5);
  const SideBySide table = compare(fake_result(), b, policy());
  ASSERT_EQ(table.cases.size(), 3u);
  EXPECT_NEAR(table.cases[0].ratio->ratio, 1.5, 1e-12);
  EXPECT_EQ(table.cases[0].change, Change::slower);
  EXPECT_EQ(*table.cases[0].a_us, 100);
  EXPECT_EQ(*table.cases[0].b_us, 150);
  EXPECT_NEAR(*table.geometric_mean_ratio, 1.5, 1e-12);
  EXPECT_EQ(compare(b, fake_result(), policy()).cases[0].change, Change::faster);
  EXPECT_EQ(compare(b, b, policy()).cases[0].change, Change::same);
}

TEST(Compare, ShowsWhatOnlyOneSideHolds) {
  Result a = fake_result(), b = fake_result();
  a.cases.pop_back();
  b.cases.erase(b.cases.begin());
  const SideBySide table = compare(a, b, policy());
  ASSERT_EQ(table.cases.size(), 3u);
  EXPECT_EQ(table.cases[0].note, "only in A");
  EXPECT_EQ(table.cases[0].change, Change::none);
  EXPECT_EQ(table.cases[2].note, "only in B");
  EXPECT_EQ(*table.cases[2].b_us, 900);
}

TEST(Compare, GivesNoRatioWhereTheDevicesDiffer) {
  Result b = fake_result();
  b.cases[0].device = "other";
  const ComparedCase row = compare(fake_result(), b, policy()).cases[0];
  EXPECT_FALSE(row.ratio);
  EXPECT_EQ(row.note, "other device: fake device in A, other in B");
}

TEST(Compare, SaysWhyACaseHasNoLatency) {
  Result a = fake_result(), b = fake_result();
  b.cases[0].outcome = Unmeasured{.status = Status::crashed, .reason = "SIGSEGV"};
  EXPECT_EQ(compare(a, b, policy()).cases[0].note, "B: crashed (SIGSEGV)");
  a.cases[0].outcome = Unmeasured{.status = Status::timeout, .reason = "60 s passed"};
  EXPECT_EQ(compare(a, b, policy()).cases[0].note,
            "A: timeout (60 s passed); B: crashed (SIGSEGV)");
  a.cases[0].outcome = b.cases[0].outcome;
  EXPECT_EQ(compare(a, b, policy()).cases[0].note, "crashed (SIGSEGV) in both");
}

TEST(Compare, KeepsToTheFilter) {
  EXPECT_EQ(compare(fake_result(), fake_result(), policy(), "*/M=16").cases.size(), 1u);
}

TEST(Compare, ClassifiesRivalsAsTheyWereMeasured) {
  Result a = fake_result();
  a.comparisons = {{.point = "p",
                    .a = "tuned",
                    .b = "default",
                    .ratio = 0.9,
                    .ci_low = 0.89,
                    .ci_high = 0.91,
                    .pairs = 9}};
  const SideBySide table = compare(a, fake_result(), policy());
  ASSERT_EQ(table.rivals_a.size(), 1u);
  EXPECT_EQ(table.rivals_a[0].change, Change::faster);
  EXPECT_TRUE(table.rivals_b.empty());
}

}  // namespace
}  // namespace moegauge
