// What this machine is, as far as the kernels and records need it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace moegauge::cpu {

struct Machine {
  std::string model =
      {};  // as in tuned-config file names: the CPU's model, spaces and slashes as '_'
  std::int64_t memory_bytes = 0;  // of which a control group may allow less
  std::int64_t l1_bytes = 0;      // data cache of one core
  std::int64_t l2_bytes = 0;
  std::int64_t last_level_cache_bytes = 0;  // all of the machine's together
  int processors = 1;                       // that this process may use
};

// Asked once per process. Cache sizes that the system does not tell are taken as 32 KiB, 1 MiB and
// 32 MiB.
const Machine& machine();

// The sizes of the highest level's distinct caches, each with the processors that share it, added
// up; 0 where /sys does not tell. `root` is "/" but for tests.
std::int64_t sum_of_last_level_caches(const std::filesystem::path& root = "/");

}  // namespace moegauge::cpu
