#include "harness/statistics/false_alarms_testing.h"

namespace moegauge {
namespace {

TEST(FalseAlarms, AreRareAndThreePercentIsCaughtAtTwiceTheSpreadOfAnH200) {
  simulation::check({.spread = 0.03, .baseline_processes = 40, .seed = 2});
}

}  // namespace
}  // namespace moegauge
