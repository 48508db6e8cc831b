#include "harness/statistics/false_alarms_testing.h"

namespace moegauge {
namespace {

TEST(FalseAlarms, AreRareAndThreePercentIsCaughtAtTheSpreadOfAnH200) {
  simulation::check({.spread = 0.014, .baseline_processes = 20, .seed = 1});
}

}  // namespace
}  // namespace moegauge
