#include "kernels/cpu/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>

#include "reference/base/process_limits.h"

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
  if (const auto limit = memory_limit()) m.memory_bytes = std::min(m.memory_bytes, *limit);
  m.l1_bytes = system_value(_SC_LEVEL1_DCACHE_SIZE, std::int64_t{32} << 10);
  m.l2_bytes = system_value(_SC_LEVEL2_CACHE_SIZE, std::int64_t{1} << 20);
  m.last_level_cache_bytes = sum_of_last_level_caches();
  if (m.last_level_cache_bytes == 0) {
    m.last_level_cache_bytes = system_value(_SC_LEVEL3_CACHE_SIZE, std::int64_t{32} << 20);
  }
  m.processors = usable_processors();
  return m;
}

}  // namespace

std::int64_t sum_of_last_level_caches(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  const auto first_word = [](const fs::path& file) {
    std::string word;
    std::ifstream(file) >> word;
    return word;
  };
  int highest = 0;
  std::map<std::string, std::int64_t> sizes;  // by the processors that share it
  std::error_code absent;
  for (const auto& cpu : fs::directory_iterator(root / "sys/devices/system/cpu", absent)) {
    for (const auto& cache : fs::directory_iterator(cpu.path() / "cache", absent)) {
      int level = 0;
      std::int64_t size = 0;
      char unit = ' ';
      std::ifstream(cache.path() / "level") >> level;
      std::ifstream(cache.path() / "size") >> size >> unit;  // 49152K
      if (level < highest || level < 2) continue;
      if (level > highest) sizes.clear();
      highest = level;
      const int shift = unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
      sizes[first_word(cache.path() / "shared_cpu_list")] = size << shift;
    }
  }
  std::int64_t sum = 0;
  for (const auto& [processors, size] : sizes) sum += size;
  return sum;
}

const Machine& machine() {
  static const Machine m = ask();
  return m;
}

}  // namespace moegauge::cpu
