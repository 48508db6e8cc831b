#include "harness/commands/machine_facts.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "reference/base/process_limits.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<double> number(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  double value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

// Flags as Linux spells them, from portable to specialised.
constexpr std::array instruction_sets_of_interest = {
    "avx2",       "fma",         "f16c",        "avx512f",  "avx512bw", "avx512vl", "avx512_vnni",
    "avx512vbmi", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16",
    "asimd",      "bf16",        "i8mm",        "sve",      "sve2",     "sme"};

void read_cpuinfo(const fs::path& root, MachineFacts& facts) {
  std::ifstream stream(root / "proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
    if (key == "processor") ++facts.logical_cpus;
    if (key == "model name" && facts.cpu_model.empty()) facts.cpu_model = value;
    if ((key == "flags" || key == "Features") && flags.empty()) {
      std::istringstream words(value);
      for (std::string word; words >> word;) flags.insert(word);
    }
  }
  facts.virtual_machine = flags.contains("hypervisor");
  for (const char* name : instruction_sets_of_interest) {
    if (flags.contains(name)) facts.instruction_sets.emplace_back(name);
  }
}

// "0-3,8" holds 5.
int count_cpu_list(const std::string& list) {
  int count = 0;
  std::istringstream stream(list);
  for (std::string range; std::getline(stream, range, ',');) {
    int first = 0, last = 0;
    const int read = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (read == 1) ++count;
    if (read == 2) count += last - first + 1;
  }
  return count;
}

void read_caches(const fs::path& root, MachineFacts& facts) {
  for (int index = 0;; ++index) {
    const fs::path folder =
        root / "sys/devices/system/cpu/cpu0/cache" / ("index" + std::to_string(index));
    const std::string size = first_line(folder / "size");
    if (size.empty()) return;
    facts.caches.push_back(
        {.level = static_cast<int>(number(first_line(folder / "level")).value_or(0)),
         .type = first_line(folder / "type"),
         .size = size,
         .shared_by = count_cpu_list(first_line(folder / "shared_cpu_list"))});
  }
}

void read_memory(const fs::path& root, MachineFacts& facts) {
  std::ifstream stream(root / "proc/meminfo");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("MemTotal:")) continue;
    const double kib = number(line.substr(line.find(':') + 1)).value_or(0);
    facts.memory_bytes = static_cast<std::int64_t>(kib) * 1024;
  }
  facts.available_bytes = available_memory(root);
}

std::optional<bool> read_turbo(const fs::path& cpu) {
  if (const std::string off = first_line(cpu / "intel_pstate/no_turbo"); !off.empty()) {
    return off == "0";
  }
  if (const std::string on = first_line(cpu / "cpufreq/boost"); !on.empty()) return on == "1";
  return std::nullopt;
}

// "always [madvise] never": the one in brackets.
std::string chosen_of(const std::string& line) {
  const auto open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return line.substr(open + 1, close - open - 1);
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

}  // namespace

MachineFacts read_machine_facts(const fs::path& root) {
  MachineFacts facts;
  const fs::path cpu = root / "sys/devices/system/cpu";
  read_cpuinfo(root, facts);
  read_caches(root, facts);
  read_memory(root, facts);
  facts.quota = cpu_quota(root);
  facts.governor = first_line(cpu / "cpu0/cpufreq/scaling_governor");
  facts.turbo = read_turbo(cpu);
  if (const std::string smt = first_line(cpu / "smt/active"); !smt.empty()) facts.smt = smt == "1";
  facts.transparent_huge_pages =
      chosen_of(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  facts.load = number(first_line(root / "proc/loadavg"));
  facts.kernel = first_line(root / "proc/sys/kernel/osrelease");
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) facts.usable_cpus = CPU_COUNT(&set);
  return facts;
}

std::vector<std::string> noise_warnings(const MachineFacts& facts) {
  std::vector<std::string> warnings;
  const double cpus = std::max(1, facts.logical_cpus);
  if (facts.load && *facts.load > 0.2 * cpus) {
    warnings.push_back("the load average is " + short_number(*facts.load) + " on " +
                       short_number(cpus) + " CPUs: other work is running; stop it or wait");
  }
  if (!facts.governor.empty() && facts.governor != "performance") {
    warnings.push_back("the frequency governor is " + facts.governor +
                       ": set it with cpupower frequency-set -g performance");
  }
  if (facts.turbo.value_or(false)) {
    warnings.push_back(
        "turbo is on, so that clocks follow temperature: turn it off in intel_pstate/no_turbo or "
        "cpufreq/boost, or compare only runs that were interleaved");
  }
  if (facts.smt.value_or(false)) {
    warnings.push_back(
        "two threads share a core: pin the run to one thread per core (taskset -c), or switch SMT "
        "off");
  }
  if (facts.quota && *facts.quota < cpus) {
    warnings.push_back("the control group allows " + short_number(*facts.quota) + " of " +
                       short_number(cpus) +
                       " CPUs: threads will be throttled; raise the quota, or set num_threads");
  }
  if (facts.virtual_machine) {
    warnings.push_back(
        "a virtual machine: neighbours share caches and memory bandwidth; expect more spread "
        "between runs and repeat what is close to a limit");
  }
  if (facts.memory_bytes > 0 && facts.available_bytes < facts.memory_bytes / 10) {
    warnings.push_back(
        "less than a tenth of the memory is available: weights may be swapped; free "
        "some");
  }
  if (facts.transparent_huge_pages == "never") {
    warnings.push_back(
        "transparent huge pages are off: weights in 4 KiB pages cost address translation; set "
        "/sys/kernel/mm/transparent_hugepage/enabled to madvise");
  }
  return warnings;
}

}  // namespace moegauge
