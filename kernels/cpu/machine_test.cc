#include "kernels/cpu/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace moegauge::cpu {
namespace {

namespace fs = std::filesystem;

class FakeCaches {
 public:
  FakeCaches() : root_(fs::path(testing::TempDir()) / ("caches_" + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~FakeCaches() { fs::remove_all(root_); }
  FakeCaches(const FakeCaches&) = delete;
  FakeCaches& operator=(const FakeCaches&) = delete;

  void add(int cpu, int index, int level, const std::string& size, const std::string& shared) {
    const fs::path folder = root_ / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                            "cache" / ("index" + std::to_string(index));
    fs::create_directories(folder);
    std::ofstream(folder / "level") << level << "\n";
    std::ofstream(folder / "size") << size << "\n";
    std::ofstream(folder / "shared_cpu_list") << shared << "\n";
  }
  std::int64_t sum() const { return sum_of_last_level_caches(root_); }

 private:
  fs::path root_;
};

TEST(Machine, AddsUpEachLastLevelCacheOnceHoweverManyProcessorsShareIt) {
  FakeCaches machine;
  EXPECT_EQ(machine.sum(), 0) << "not told";
  for (int cpu = 0; cpu < 6; ++cpu) {
    machine.add(cpu, 0, 1, "48K", std::to_string(cpu));
    machine.add(cpu, 2, 2, "1280K", std::to_string(cpu));
  }
  EXPECT_EQ(machine.sum(), 6 * 1280 * 1024) << "where there is no third level";
  for (int cpu = 0; cpu < 6; ++cpu) machine.add(cpu, 3, 3, "32M", cpu < 3 ? "0-2" : "3-5");
  EXPECT_EQ(machine.sum(), 2 * 32 * 1024 * 1024) << "two dies";
}

TEST(Machine, IsWhatThisProcessMayUse) {
  EXPECT_GT(machine().last_level_cache_bytes, 0);
  EXPECT_GT(machine().memory_bytes, 0);
  EXPECT_GE(machine().processors, 1);
}

}  // namespace
}  // namespace moegauge::cpu
