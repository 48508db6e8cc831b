// What this machine is, as far as the kernels and records need it.
#pragma once

#include <cstdint>
#include <string>

namespace moegauge::cpu {

struct Machine {
  std::string model =
      {};  // as in tuned-config file names: the CPU's model, spaces and slashes as '_'
  std::int64_t memory_bytes = 0;
  std::int64_t l1_bytes = 0;  // data cache of one core
  std::int64_t l2_bytes = 0;
  std::int64_t last_level_cache_bytes = 0;
  int processors = 1;  // that this process may use
};

// Asked once per process. Cache sizes that the system does not tell are taken as 32 KiB, 1 MiB and
// 32 MiB.
const Machine& machine();

}  // namespace moegauge::cpu
