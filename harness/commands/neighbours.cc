#include "harness/commands/neighbours.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

namespace moegauge {
namespace {

constexpr double kShareThatCounts = 0.1;
constexpr double kLeastSeconds = 1;  // the kernel counts in hundredths

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double own_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    if (::getrusage(who, &usage) == 0) sum += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return sum;
}

}  // namespace

std::optional<double> busy_seconds(const std::filesystem::path& root) {
  std::ifstream stream(root / "proc/stat");
  std::string all_processors;  // the first line is their sum
  // user nice system idle iowait irq softirq steal
  std::array<double, 8> ticks{};
  stream >> all_processors;
  for (double& tick : ticks) {
    if (!(stream >> tick)) return std::nullopt;
  }
  const double idle = ticks[3] + ticks[4];
  double all = 0;
  for (const double tick : ticks) all += tick;
  return (all - idle) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

Neighbours::Neighbours()
    : start_(std::chrono::steady_clock::now()), busy_(busy_seconds("/")), own_(own_seconds()) {}

std::string Neighbours::warning() const {
  const std::optional<double> busy = busy_seconds("/");
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!busy || !busy_ || passed < kLeastSeconds) return "";
  const double others = (*busy - *busy_ - (own_seconds() - own_)) / passed;
  return neighbours_warning(others, static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string device_neighbours_warning(const std::set<unsigned>& processes) {
  if (processes.empty()) return "";
  std::string ids;
  for (const unsigned process : processes) {
    ids += (ids.empty() ? "" : ", ") + std::to_string(process);
  }
  return std::string(processes.size() == 1 ? "process " : "processes ") + ids +
         (processes.size() == 1 ? " holds" : " hold") +
         " the device too: latencies may include its work; measure again when it is free";
}

std::string neighbours_warning(double others, double processors) {
  if (others <= kShareThatCounts * processors) return "";
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "other processes kept %.1f of %g processors busy meanwhile: latencies on this "
                "machine's processors include that; measure again when they are done",
                others, processors);
  return text.data();
}

}  // namespace moegauge
