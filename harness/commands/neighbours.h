// What other processes of the machine used while a run lasted: the commonest reason for latencies
// that nobody can repeat.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace moegauge {

// Processor seconds since boot that all processes used, or that a hypervisor gave to another guest,
// as /proc/stat counts them (proc(5)); nothing where it cannot be read. `root` is "/" but in tests.
std::optional<double> busy_seconds(const std::filesystem::path& root);

// Begins to watch when it is made.
class Neighbours {
 public:
  Neighbours();
  // A sentence where others used more than a tenth of the machine's processors, else empty. The
  // children that count as our own are those that have been waited for.
  std::string warning() const;

 private:
  std::chrono::steady_clock::time_point start_;
  std::optional<double> busy_;
  double own_;
};

// The sentence for processes that held a device that was measured on; empty where there were none.
std::string device_neighbours_warning(const std::set<unsigned>& processes);

// The sentence for `others` busy processors of `processors`, on average.
std::string neighbours_warning(double others, double processors);

}  // namespace moegauge
