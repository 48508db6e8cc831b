#include "kernels/nvidia/runtime/telemetry.h"

#include <gtest/gtest.h>

namespace moegauge::cuda {
namespace {

TEST(ThrottleReasons, NamesWhatSlowsAKernelDownAndNotTheIdleState) {
  EXPECT_TRUE(throttle_reason_names(0x1 | 0x2).empty());
  EXPECT_EQ(throttle_reason_names(0x4 | 0x40),
            (std::vector<std::string>{"software power cap", "hardware thermal slowdown"}));
}

TEST(Telemetry, SaysWhyThereIsNone) {
  const auto telemetry = Telemetry::open("0000:00:00.0");
  if (telemetry) GTEST_SKIP() << "this machine has such a device";
  EXPECT_NE(telemetry.error().sentence.find("NVML"), std::string::npos);
}

}  // namespace
}  // namespace moegauge::cuda
