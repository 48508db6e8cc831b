#include "harness/measure/resident.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/measure/rival.h"

namespace moegauge {
namespace {

constexpr double plenty = std::numeric_limits<double>::infinity();

TEST(ChooseWeightSets, RoundsUpToWhatSlotsDivide) {
  EXPECT_EQ(choose_weight_sets(1, 1e9, plenty), 1);
  EXPECT_EQ(choose_weight_sets(2, 1e9, plenty), 2);
  EXPECT_EQ(choose_weight_sets(3, 1e9, plenty), 4);
  EXPECT_EQ(choose_weight_sets(5, 1e9, plenty), 8);
  EXPECT_EQ(choose_weight_sets(21, 1e9, plenty), 24);
}

// Half of 10 GB holds 5 sets of 1 GB: 4 of them are rotated over.
TEST(ChooseWeightSets, FitsHalfOfTheMemory) {
  EXPECT_EQ(choose_weight_sets(24, 1e9, 10e9), 4);
  EXPECT_EQ(choose_weight_sets(24, 1e9, 40e9), 16);
  EXPECT_EQ(choose_weight_sets(24, 1e9, 1e9), 1) << "one set is loaded whatever it takes";
}

TEST(AvailableMemory, IsKnownOnThisMachine) {
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LT(available_memory_bytes(), plenty);
}

TEST(SlotsFor, AverageOverDrawnRoutingsWhereTheyDiffer) {
  EXPECT_EQ(slots_for(1, Cache::cold_weights, Launch::eager), 8);
  EXPECT_EQ(slots_for(4, Cache::cold_weights, Launch::eager), 8);
  EXPECT_EQ(slots_for(8, Cache::cold_weights, Launch::eager), 4);
  EXPECT_EQ(slots_for(16, Cache::cold_weights, Launch::eager), 2);
  EXPECT_EQ(slots_for(64, Cache::cold_weights, Launch::eager), 1);
  EXPECT_EQ(slots_for(1, Cache::hot, Launch::eager), 1);
  EXPECT_EQ(slots_for(1024, Cache::cold_weights, Launch::graph), 8);
  EXPECT_EQ(slots_for(2048, Cache::cold_weights, Launch::graph), 4);
  EXPECT_EQ(slots_for(1, Cache::hot, Launch::graph), 1);
}

// Every row starts on set 0. A set must not be read again before all others: a row of 26 calls over
// 24 sets would end on sets 0 and 1, and the next begin with them.
TEST(CallsPerRow, NeverReadASetAgainBeforeAllOthers) {
  EXPECT_EQ(calls_per_row(1, 8, 24), 8);
  EXPECT_EQ(calls_per_row(24, 8, 24), 24);
  EXPECT_EQ(calls_per_row(26, 8, 24), 48);
  EXPECT_EQ(calls_per_row(3, 1, 24), 3)
      << "two sets suffice for this point: no need to turn through all";
}

TEST(CallsPerRow, TurnThroughEverySlot) {
  EXPECT_EQ(calls_per_row(5, 8, 1), 8);
  EXPECT_EQ(calls_per_row(9, 4, 2), 12);
  EXPECT_EQ(calls_per_row(0, 1, 1), 1);
}

}  // namespace
}  // namespace moegauge
