#include "reference/base/process_limits.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::optional<double> number(const std::string& word) {
  std::istringstream stream(word);
  double value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;  // "max" is no limit
}

// The words of a file's first line.
std::vector<std::string> words(const fs::path& file) {
  std::ifstream stream(file);
  std::string line, word;
  std::getline(stream, line);
  std::istringstream rest(line);
  std::vector<std::string> all;
  while (rest >> word) all.push_back(word);
  return all;
}

std::optional<double> only_number(const fs::path& file) {
  const auto all = words(file);
  return all.empty() ? std::nullopt : number(all[0]);
}

// The value behind a key of a file with one key per line, such as memory.stat.
double value_of(const fs::path& file, std::string_view key) {
  std::ifstream stream(file);
  std::string name;
  for (double value = 0; stream >> name; stream.ignore(256, '\n')) {
    if (name == key && stream >> value) return value;
  }
  return 0;
}

bool lists(const std::string& controllers, std::string_view controller) {
  std::istringstream stream(controllers);
  for (std::string name; std::getline(stream, name, ',');) {
    if (name == controller) return true;
  }
  return false;
}

// Folders of the groups that this process is in, innermost first, which the root of each hierarchy
// ends. Lines of /proc/self/cgroup are "number:controllers:path", the number 0 with no controllers
// for version 2. In a container that sees the host's path but not the host's folders, the root is
// what remains.
std::vector<fs::path> group_folders(const fs::path& root, std::string_view controller) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& mount, std::string path) {
    while (!path.empty() && path != "/") {
      folders.push_back(mount / path.substr(1));
      path = path.substr(0, path.rfind('/'));
    }
    folders.push_back(mount);
  };
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      add(mounts, path);
      add(mounts / "unified", path);
    } else if (lists(controllers, controller)) {
      add(mounts / controllers, path);
      add(mounts / controller, path);
    }
  }
  if (folders.empty()) folders = {mounts, mounts / controller};
  return folders;
}

void lower(std::optional<double>& least, std::optional<double> value) {
  if (value && (!least || *value < *least)) least = value;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for (const fs::path& folder : group_folders(root, "cpu")) {
    const auto v2 = words(folder / "cpu.max");  // "QUOTA PERIOD" or "max PERIOD"
    auto quota = v2.size() == 2 ? number(v2[0]) : only_number(folder / "cpu.cfs_quota_us");
    auto period = v2.size() == 2 ? number(v2[1]) : only_number(folder / "cpu.cfs_period_us");
    // Version 1 says -1 for none.
    if (quota && period && *quota > 0 && *period > 0) lower(least, *quota / *period);
  }
  return least;
}

namespace {

// Version 1 writes its largest multiple of the page size, about 2^63, for no limit.
constexpr double kNoLimit = 0x1p62;

std::optional<double> limit_of(const fs::path& folder) {
  auto limit = only_number(folder / "memory.max");
  if (!limit) limit = only_number(folder / "memory.limit_in_bytes");
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

// Without the cached files that the system drops when memory is asked for.
double used_of(const fs::path& folder) {
  if (const auto used = only_number(folder / "memory.current")) {
    return *used - value_of(folder / "memory.stat", "inactive_file");
  }
  return only_number(folder / "memory.usage_in_bytes").value_or(0) -
         value_of(folder / "memory.stat", "total_inactive_file");
}

}  // namespace

std::optional<std::int64_t> memory_limit(const fs::path& root) {
  std::optional<double> least;
  for (const fs::path& folder : group_folders(root, "memory")) lower(least, limit_of(folder));
  return least ? std::optional(static_cast<std::int64_t>(*least)) : std::nullopt;
}

std::int64_t available_memory(const fs::path& root) {
  std::optional<double> least;
  const double kib = value_of(root / "proc/meminfo", "MemAvailable:");
  if (kib > 0) least = kib * 1024;
  for (const fs::path& folder : group_folders(root, "memory")) {
    if (const auto limit = limit_of(folder)) lower(least, std::max(0.0, *limit - used_of(folder)));
  }
  return static_cast<std::int64_t>(least.value_or(0));
}

int usable_processors(const fs::path& root) {
  int processors = static_cast<int>(std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) processors = CPU_COUNT(&set);
#endif
  const auto quota = cpu_quota(root);
  if (quota && *quota < processors) processors = static_cast<int>(*quota);
  return std::max(1, processors);
}

}  // namespace moegauge
