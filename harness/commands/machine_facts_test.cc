#include "harness/commands/machine_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A tree of files like /proc and /sys.
class FakeMachine {
 public:
  FakeMachine() {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
  }
  ~FakeMachine() { fs::remove_all(root_); }
  FakeMachine& with(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return *this;
  }
  MachineFacts facts() const { return read_machine_facts(root_); }

 private:
  fs::path root_;
};

TEST(MachineFacts, AreReadFromProcAndSys) {
  FakeMachine machine;
  machine
      .with("proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: fpu avx2 avx512_vnni\n\n"
            "processor\t: 1\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: fpu avx2 avx512_vnni\n")
      .with("proc/meminfo",
            "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n")
      .with("proc/loadavg", "0.25 0.10 0.05 1/100 12345\n")
      .with("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n")
      .with("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n")
      .with("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n")
      .with("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0-3,8\n")
      .with("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
      .with("sys/fs/cgroup/cpu.max", "150000 100000\n");
  const MachineFacts facts = machine.facts();
  EXPECT_EQ(facts.cpu_model, "Some CPU @ 2.60GHz");
  EXPECT_EQ(facts.logical_cpus, 2);
  EXPECT_THAT(facts.instruction_sets, ElementsAre("avx2", "avx512_vnni"));
  EXPECT_EQ(facts.memory_bytes, 24000000LL * 1024);
  EXPECT_EQ(facts.available_bytes, 20000000LL * 1024);
  EXPECT_EQ(*facts.load, 0.25);
  ASSERT_EQ(facts.caches.size(), 1u);
  EXPECT_EQ(facts.caches[0].size, "48K");
  EXPECT_EQ(facts.caches[0].shared_by, 5);
  EXPECT_EQ(facts.transparent_huge_pages, "madvise");
  EXPECT_EQ(*facts.quota, 1.5);
  EXPECT_FALSE(facts.virtual_machine);
}

TEST(MachineFacts, OfAnEmptyTreeAreEmptyAndNoError) {
  const MachineFacts facts = FakeMachine().facts();
  EXPECT_EQ(facts.logical_cpus, 0);
  EXPECT_FALSE(facts.load);
  EXPECT_FALSE(facts.quota);
  EXPECT_FALSE(facts.turbo);
}

TEST(MachineFacts, TellAnUnlimitedControlGroupFromALimitedOne) {
  EXPECT_FALSE(FakeMachine().with("sys/fs/cgroup/cpu.max", "max 100000\n").facts().quota);
  FakeMachine v1;
  v1.with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(v1.facts().quota);
}

TEST(MachineFacts, ReadTurboFromEitherDriver) {
  EXPECT_TRUE(
      *FakeMachine().with("sys/devices/system/cpu/intel_pstate/no_turbo", "0").facts().turbo);
  EXPECT_FALSE(*FakeMachine().with("sys/devices/system/cpu/cpufreq/boost", "0").facts().turbo);
}

MachineFacts quiet_machine() {
  return {.logical_cpus = 8,
          .memory_bytes = 100,
          .available_bytes = 90,
          .governor = "performance",
          .turbo = false,
          .smt = false,
          .transparent_huge_pages = "madvise",
          .load = 0.1};
}

TEST(NoiseWarnings, HasNoneForAQuietMachine) {
  EXPECT_THAT(noise_warnings(quiet_machine()), IsEmpty());
}

TEST(NoiseWarnings, SayWhatToDoAboutEachSource) {
  MachineFacts facts = quiet_machine();
  facts.load = 3.2;
  facts.governor = "powersave";
  facts.turbo = true;
  facts.smt = true;
  facts.quota = 1.5;
  facts.virtual_machine = true;
  facts.available_bytes = 9;
  facts.transparent_huge_pages = "never";
  EXPECT_THAT(
      noise_warnings(facts),
      ElementsAre("the load average is 3.2 on 8 CPUs: other work is running; stop it or wait",
                  HasSubstr("cpupower frequency-set -g performance"), HasSubstr("turbo is on"),
                  HasSubstr("taskset"), HasSubstr("allows 1.5 of 8 CPUs"),
                  HasSubstr("a virtual machine"), HasSubstr("less than a tenth"),
                  HasSubstr("huge pages are off")));
}

}  // namespace
}  // namespace moegauge
