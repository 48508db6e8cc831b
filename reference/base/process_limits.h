// What of the machine this process may use: the affinity mask, and the CPU quota and memory limit
// of the control groups that it runs in (containers, batch systems). Both versions of control
// groups are read, whether the process sees its group as the root or not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace moegauge {

// Processor time per time, e.g. 1.5; nullopt where no group limits it. `root` is "/" but for tests.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

// Bytes that the groups allow, used or not; nullopt where none limits them.
std::optional<std::int64_t> memory_limit(const std::filesystem::path& root = "/");

// Bytes that an allocation can still take without swapping, here and within the groups; 0 where
// unknown.
std::int64_t available_memory(const std::filesystem::path& root = "/");

// Threads that can run at one time, at least 1: processors of the affinity mask, of which a quota
// leaves its whole ones.
int usable_processors(const std::filesystem::path& root = "/");

}  // namespace moegauge
