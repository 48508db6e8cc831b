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
