#include "harness/worker/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace moegauge {
namespace {

using ::testing::ElementsAre;

CaseCoordinates at(const std::string& scheme, std::int64_t tokens, const std::string& config,
                   const std::string& cache = "cold_weights") {
  CaseCoordinates c;
  c.model = "m";
  c.scheme = scheme;
  c.tokens = tokens;
  c.config = config;
  c.cache = cache;
  return c;
}

TEST(Schedule, GroupsByWeightsAndPointsByRivals) {
  const std::vector<CaseCoordinates> cases = {
      at("bf16", 1, "default"), at("fp8_block", 1, "default"), at("bf16", 1, "tuned"),
      at("bf16", 2, "default"), at("fp8_block", 1, "tuned")};
  const auto groups = schedule(cases);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].cases, ElementsAre(0, 2, 3));
  EXPECT_THAT(groups[0].points, ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(groups[1].cases, ElementsAre(1, 4));
  EXPECT_THAT(groups[1].points, ElementsAre(ElementsAre(0, 1)));
}

TEST(Schedule, HotCasesKeepTheirOwnWeights) {
  const std::vector<CaseCoordinates> cases = {
      at("bf16", 1, "default"), at("bf16", 1, "default", "hot"), at("bf16", 1, "default", "cold")};
  const auto groups = schedule(cases);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_THAT(groups[0].cases, ElementsAre(0, 2));
  EXPECT_THAT(groups[1].cases, ElementsAre(1));
}

// Two groups of five and of one point: 1, then 2, then the last 2 of the first.
TEST(InSlices, EveryGroupHasItsFirstPointBeforeAnyHasItsSecond) {
  std::vector<CaseCoordinates> cases;
  for (const std::int64_t tokens : {1, 2, 4, 8, 16}) cases.push_back(at("bf16", tokens, "default"));
  cases.push_back(at("fp8_block", 1, "default"));
  const auto slices = in_slices(schedule(cases));
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_THAT(slices[0].points, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(slices[1].cases, ElementsAre(5));
  EXPECT_THAT(slices[1].points, ElementsAre(ElementsAre(0)));
  EXPECT_THAT(slices[2].points, ElementsAre(ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(slices[3].cases, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(slices[3].points, ElementsAre(ElementsAre(3), ElementsAre(4)));
}

TEST(Shard, DealsWholePoints) {
  const std::vector<CaseCoordinates> cases = {at("bf16", 1, "default"), at("bf16", 1, "tuned"),
                                              at("bf16", 2, "default"), at("bf16", 2, "tuned"),
                                              at("bf16", 4, "default")};
  EXPECT_THAT(shard(cases, 1, 2), ElementsAre(0, 1, 4));
  EXPECT_THAT(shard(cases, 2, 2), ElementsAre(2, 3));
  EXPECT_THAT(shard(cases, 3, 3), ElementsAre(4));
  EXPECT_THAT(shard(cases, 4, 4), ElementsAre()) << "more shards than points";
}

}  // namespace
}  // namespace moegauge
