#include "harness/commands/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Fields of proc(5): user nice system idle iowait irq softirq steal guest guest_nice. Idle and
// waiting for disks is not busy; a guest's time is in user already.
TEST(BusySeconds, AreAllThatIsNotIdle) {
  const fs::path root = fs::path(testing::TempDir()) / "busy_seconds";
  fs::create_directories(root / "proc");
  std::ofstream(root / "proc/stat")
      << "cpu  100 20 30 4000 500 6 7 8 50 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
  EXPECT_DOUBLE_EQ(*busy_seconds(root),
                   (100 + 20 + 30 + 6 + 7 + 8) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  std::ofstream(root / "proc/stat") << "cpu  100 20\n";
  EXPECT_FALSE(busy_seconds(root)) << "cut";
  EXPECT_FALSE(busy_seconds(root / "nowhere"));
  fs::remove_all(root);
}

TEST(NeighboursWarning, StartsAtATenthOfTheMachine) {
  EXPECT_EQ(neighbours_warning(0.2, 2), "");
  EXPECT_THAT(neighbours_warning(0.25, 2), HasSubstr("kept 0.2 of 2 processors busy"));
  EXPECT_EQ(neighbours_warning(-0.1, 2), "") << "clocks that disagree";
}

TEST(DeviceNeighboursWarning, NamesTheProcesses) {
  EXPECT_EQ(device_neighbours_warning({}), "");
  EXPECT_THAT(device_neighbours_warning({17}), HasSubstr("process 17 holds the device too"));
  EXPECT_THAT(device_neighbours_warning({18, 17}), HasSubstr("processes 17, 18 hold the device"));
}

}  // namespace
}  // namespace moegauge
