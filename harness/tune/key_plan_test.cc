#include "harness/tune/key_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/testing/scripted_backend.h"

namespace moegauge {
namespace {

using ::testing::ElementsAre;

Config block(std::int64_t size) { return {.values = {{"BLOCK_SIZE_M", size}}}; }

// Its default is BLOCK_SIZE_M 16.
KeyPlan planned(std::vector<Config> candidates, const ConfigTable* base = nullptr,
                std::size_t most = 100) {
  const ScriptedBackend backend({.name = "scripted", .candidates = std::move(candidates)});
  return plan_key(backend, {.layer = {}, .scheme = nullptr, .tokens = 8}, base, most);
}

TEST(KeyPlan, LeavesOutTheDefaultAndWhatIsThereTwice) {
  const KeyPlan plan = planned({block(16), block(32), block(64), block(32)});
  EXPECT_THAT(plan.candidates, ElementsAre(block(32), block(64)));
  EXPECT_EQ(plan.standard, block(16));
  EXPECT_FALSE(plan.incumbent);
}

TEST(KeyPlan, TakesTheLikelyOnesAndCountsTheRest) {
  const KeyPlan plan = planned({block(32), block(64), block(128)}, nullptr, 2);
  EXPECT_THAT(plan.candidates, ElementsAre(block(32), block(64)));
  EXPECT_EQ(plan.left_out, 1u);
}

TEST(KeyPlan, TheIncumbentIsWhatLookupInABaseGives) {
  const ConfigTable base{.entries = {{8, block(64)}, {100, block(32)}}};
  const KeyPlan plan = planned({block(32), block(64)}, &base);
  EXPECT_EQ(plan.incumbent, block(64));
  EXPECT_TRUE(plan.in_base);
  EXPECT_THAT(plan.candidates, ElementsAre(block(32)));
  const ConfigTable elsewhere{.entries = {{4, block(64)}}};
  EXPECT_EQ(planned({block(32)}, &elsewhere).incumbent, block(64));
  EXPECT_FALSE(planned({block(32)}, &elsewhere).in_base);
}

TEST(KeyPlan, AnIncumbentThatIsTheDefaultIsNone) {
  const ConfigTable base{.entries = {{8, block(16)}}};
  const KeyPlan plan = planned({block(32)}, &base);
  EXPECT_FALSE(plan.incumbent);
  EXPECT_TRUE(plan.in_base);
}

// How many threads there are is the machine's business: no candidate has the key, so no file has.
TEST(KeyPlan, TheDefaultIsWrittenInTheKeysOfCandidates) {
  EXPECT_TRUE(planned({}).standard.values.empty());
}

}  // namespace
}  // namespace moegauge
