#include "harness/measure/rest.h"

#include <gtest/gtest.h>

namespace moegauge {
namespace {

TEST(RestTest, ADeviceThatTellsNothingOfItselfDoesNotRest) {
  EXPECT_EQ(rest_after(0.004, std::nullopt), 0);
}

TEST(RestTest, IdleAsLongAsBusy) {
  EXPECT_EQ(rest_after(0.004, DeviceState{.clock_mhz = 1980}), 0.004);
  EXPECT_EQ(rest_after(0.5, DeviceState{}), 0.5);
}

TEST(RestTest, ClocksThatAreHeldDownGetTimeToRecover) {
  const DeviceState held = {.clock_mhz = 1410, .throttle_reasons = {"software power cap"}};
  EXPECT_EQ(rest_after(0.004, held), kRecoverySeconds);
  EXPECT_EQ(rest_after(0.5, held), 0.5);
}

}  // namespace
}  // namespace moegauge
