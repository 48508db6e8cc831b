#include "reference/base/process_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// A tree of /proc and /sys files.
class FakeRoot {
 public:
  FakeRoot() {
    static int count = 0;
    root_ = fs::path(testing::TempDir()) /
            ("process_limits_" + std::to_string(getpid()) + "_" + std::to_string(++count));
    fs::create_directories(root_);
  }
  ~FakeRoot() { fs::remove_all(root_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  FakeRoot& with(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return *this;
  }
  const fs::path& path() const { return root_; }

 private:
  fs::path root_;
};

TEST(ProcessLimits, AMachineWithoutGroupsHasNone) {
  FakeRoot root;
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  EXPECT_EQ(memory_limit(root.path()), std::nullopt);
  EXPECT_EQ(available_memory(root.path()), 0) << "unknown";
  EXPECT_GE(usable_processors(root.path()), 1);
  root.with("proc/meminfo", "MemTotal: 4000 kB\nMemFree: 10 kB\nMemAvailable:   3000 kB\n");
  EXPECT_EQ(available_memory(root.path()), 3000 * 1024);
}

TEST(ProcessLimits, VersionTwoSaysMaxForNoLimit) {
  FakeRoot root;
  root.with("proc/self/cgroup", "0::/\n")
      .with("proc/meminfo", "MemAvailable: 3000 kB\n")
      .with("sys/fs/cgroup/cpu.max", "max 100000\n")
      .with("sys/fs/cgroup/memory.max", "max\n")
      .with("sys/fs/cgroup/memory.current", "1000\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  EXPECT_EQ(memory_limit(root.path()), std::nullopt);
  EXPECT_EQ(available_memory(root.path()), 3000 * 1024);
}

TEST(ProcessLimits, TheTightestOfNestedGroupsCounts) {
  FakeRoot root;
  root.with("proc/self/cgroup", "0::/outer/inner\n")
      .with("proc/meminfo", "MemAvailable: 3000 kB\n")
      .with("sys/fs/cgroup/outer/cpu.max", "150000 100000\n")
      .with("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n")
      .with("sys/fs/cgroup/outer/memory.max", "900000\n")
      .with("sys/fs/cgroup/outer/memory.current", "500000\n")
      .with("sys/fs/cgroup/outer/memory.stat", "anon 400000\ninactive_file 100000\n")
      .with("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  EXPECT_EQ(cpu_quota(root.path()), 1.5);
  EXPECT_EQ(usable_processors(root.path()), 1) << "the half would throttle both threads";
  EXPECT_EQ(memory_limit(root.path()), 900000);
  EXPECT_EQ(available_memory(root.path()), 900000 - (500000 - 100000));
}

TEST(ProcessLimits, VersionOneHasAHierarchyPerController) {
  FakeRoot root;
  root.with("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n1:cpuset:/\n")
      .with("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n")
      .with("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n")
      .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
      .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
      .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .with("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n")
      .with("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1500000\n")
      .with("sys/fs/cgroup/memory/job/memory.stat", "cache 9\ntotal_inactive_file 250000\n");
  EXPECT_EQ(cpu_quota(root.path()), 0.5);
  EXPECT_EQ(usable_processors(root.path()), 1);
  EXPECT_EQ(memory_limit(root.path()), 2000000);
  EXPECT_EQ(available_memory(root.path()), 2000000 - (1500000 - 250000));
}

TEST(ProcessLimits, AContainerThatSeesOnlyItsOwnFoldersIsLimitedByTheRoot) {
  FakeRoot root;
  root.with("proc/self/cgroup", "4:memory:/host/path\n2:cpu:/host/path\n")
      .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n")
      .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
      .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  EXPECT_EQ(cpu_quota(root.path()), 1.0);
  EXPECT_EQ(memory_limit(root.path()), 4096);
}

TEST(ProcessLimits, TheMachineThatRunsThisIsReadable) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_GE(usable_processors(), 1);
}

}  // namespace
}  // namespace moegauge
