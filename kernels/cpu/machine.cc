#include "kernels/cpu/machine.h"

#include <unistd.h>

#include <fstream>

#include "reference/base/thread_pool.h"

namespace moegauge::cpu {
namespace {

std::string cpu_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(' ', colon + 1);
    if (begin == std::string::npos) continue;
    std::string model = line.substr(begin);
    for (char& c : model) {
      if (c == ' ' || c == '/' || c == ',') c = '_';
    }
    return model;
  }
  return "CPU";
}

std::int64_t system_value(int name, std::int64_t otherwise) {
  const long value = sysconf(name);
  return value > 0 ? value : otherwise;
}

Machine ask() {
  Machine m;
  m.model = cpu_model();
  m.memory_bytes = system_value(_SC_PHYS_PAGES, 0) * system_value(_SC_PAGESIZE, 4096);
  m.l1_bytes = system_value(_SC_LEVEL1_DCACHE_SIZE, std::int64_t{32} << 10);
  m.l2_bytes = system_value(_SC_LEVEL2_CACHE_SIZE, std::int64_t{1} << 20);
  m.last_level_cache_bytes = system_value(_SC_LEVEL3_CACHE_SIZE, std::int64_t{32} << 20);
  m.processors = ThreadPool::usable_processors();
  return m;
}

}  // namespace

const Machine& machine() {
  static const Machine m = ask();
  return m;
}

}  // namespace moegauge::cpu
