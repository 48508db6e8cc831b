#include "harness/measure/resident.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

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

// Calls take `seconds` by its own clock; notes where each run began.
class ClockedPlan : public Runnable {
 public:
  explicit ClockedPlan(double seconds) : seconds_(seconds) {}
  const KernelIdentity& identity() const override { return identity_; }
  int slots() const override { return 4; }
  std::optional<Fault> poison() override { return std::nullopt; }
  Expected<double, Fault> run(const RunRequest& request) override {
    runs.push_back({request.first_set, request.calls});
    return seconds_ * static_cast<double>(request.calls);
  }
  using Run = std::pair<std::int64_t, std::int64_t>;  // first set, calls
  std::vector<Run> runs;

 private:
  double seconds_;
  KernelIdentity identity_;
};

struct Timed {
  explicit Timed(double seconds) : plan(seconds) {
    EXPECT_FALSE(run.pilot(0.004));
    plan.runs.clear();
  }
  void rows(int count) {
    Member member = run.member("one");
    for (int i = 0; i < count; ++i) EXPECT_TRUE(member.run(member.calls_per_row).has_value());
  }
  ClockedPlan plan;
  CeilingsMeter ceilings{[] { return Ceilings{.read_bytes_per_s = 1e9, .dot_flops_per_s = 1e9}; }};
  WeightTurn turn;
  TimedRun run{plan, {.weight_sets = 100, .sets_for_cold = 100}, ceilings, turn};
};

TEST(TimedRun, ReadsEverySetInARowWhereThatIsShort) {
  Timed fast(1e-5);
  fast.rows(2);
  EXPECT_THAT(fast.plan.runs,
              testing::ElementsAre(ClockedPlan::Run(0, 400), ClockedPlan::Run(0, 400)));
}

// 100 sets of 17 ms: a row that read them all would last 1.7 s.
TEST(TimedRun, GoesOnWithTheSetsFromRowToRowWhereATurnIsLong) {
  Timed slow(0.017);
  slow.rows(26);
  EXPECT_EQ(slow.plan.runs.front(), ClockedPlan::Run(0, 4));
  EXPECT_EQ(slow.plan.runs[24], ClockedPlan::Run(96, 4));
  EXPECT_EQ(slow.plan.runs[25], ClockedPlan::Run(0, 4));
}

}  // namespace
}  // namespace moegauge
