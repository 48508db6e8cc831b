#include "harness/commands/process_progress.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "harness/commands/duration.h"
#include "harness/commands/options.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void add_run_selection(CLI::App& app, SelectionOptions& o, CLI::Option& needed) {
  app.add_option("--backend", o.backends, "Measure on these instead of the suite's: cpu,...")
      ->delimiter(',')
      ->needs(&needed);
  app.add_option("--device", o.device, "Device of one backend, e.g. cpu:0")->needs(&needed);
  app.add_option("--tokens", o.tokens, "These batch sizes instead of the suite's: 1,16 or 1-4096*2")
      ->needs(&needed);
}

std::vector<std::string> run_words(const fs::path& suite, const SelectionOptions& o) {
  std::vector<std::string> words = {"run", fs::absolute(suite).string()};
  for (const std::string& backend : o.backends) words.insert(words.end(), {"--backend", backend});
  if (!o.device.empty()) words.insert(words.end(), {"--device", o.device});
  if (!o.tokens.empty()) words.insert(words.end(), {"--tokens", o.tokens});
  if (o.filter != "*") words.insert(words.end(), {filter_option, o.filter});
  return words;
}

std::string process_name(std::size_t index, std::size_t count) {
  const std::string number = std::to_string(index + 1);
  const std::size_t digits = std::max<std::size_t>(2, std::to_string(count).size());
  return std::string(digits - std::min(digits, number.size()), '0') + number;
}

Collected collect_with_progress(const fs::path& folder,
                                const std::vector<MeasuringProcess>& processes, double spacing,
                                const Environment& environment, CollectHooks hooks) {
  const InterruptGuard guard;
  hooks.interruption = {.signal = [&guard] { return guard.signal(); },
                        .wait_mask = guard.wait_mask()};
  const Clock::time_point start = Clock::now();
  Clock::time_point last = start;
  std::size_t measured = 0;
  hooks.finished = [&](std::size_t index, bool already) {
    const std::size_t left = processes.size() - index - 1;
    environment.err << "[" << index + 1 << "/" << processes.size() << "] " << processes[index].name;
    if (already) {
      environment.err << "  is there\n";
      return;
    }
    ++measured;
    environment.err << "  " << duration_text(seconds_since(last));
    if (left > 0) {
      const double each = seconds_since(start) / static_cast<double>(measured);
      environment.err << ", about " << duration_text(each * static_cast<double>(left)) << " left";
    }
    environment.err << '\n';
    last = Clock::now();
  };
  return collect(folder, processes, spacing, hooks);
}

}  // namespace moegauge
