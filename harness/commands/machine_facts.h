// What this machine is, as far as it matters to a measurement: read from /proc and /sys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace moegauge {

struct CpuCache {
  int level = 0;
  std::string type = {};  // Data, Instruction, Unified
  std::string size = {};  // as the kernel writes it: 48K
  int shared_by = 0;      // logical CPUs
};

// Whatever the machine does not tell is empty.
struct MachineFacts {
  std::string cpu_model = {};
  int logical_cpus = 0;
  int usable_cpus = 0;                             // by this process's affinity
  std::optional<double> quota = {};                // CPUs that the control group may use
  std::vector<std::string> instruction_sets = {};  // of those that kernels care about
  std::vector<CpuCache> caches = {};
  std::int64_t memory_bytes = 0, available_bytes = 0;
  std::string governor = {};
  std::optional<bool> turbo = {};
  std::optional<bool> smt = {};
  std::string transparent_huge_pages = {};  // always, madvise, never
  std::optional<double> load = {};          // 1-minute average
  bool virtual_machine = false;
  std::string kernel = {};
};

// `root` is "/" but in tests; `usable_cpus` comes from the running system in any case.
MachineFacts read_machine_facts(const std::filesystem::path& root);

// What makes measurements on such a machine noisy, each with what to do about it.
std::vector<std::string> noise_warnings(const MachineFacts& facts);

}  // namespace moegauge
