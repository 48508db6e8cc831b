// The command line with backends that misbehave, one way each, for the tests of the worker.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/commands/command.h"
#include "harness/testing/scripted_backend.h"
#include "harness/worker/protocol.h"

namespace moegauge {
namespace {

// Of the tiny model with up to 2 tokens: run 0 is the first launch, 1 the one held against the
// truth, 2 on repeat it; two more of the pilot, then rows of the timing, from 6 or 7 on.
constexpr int kFirstLaunch = 0, kRepeated = 2, kTimedRow = 8;

std::optional<Fault> die(int signal) {
  std::signal(signal, SIG_DFL);  // as in a process without a sanitiser's own handler
  std::raise(signal);
  return std::nullopt;
}

[[noreturn]] void sleep_forever() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(60));
}

// Under a limit on its address space, as a batch system sets one.
std::optional<Fault> exhaust_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  throw std::bad_alloc();  // sanitisers need more address space than any limit, and abort
#endif
  const rlimit limit{512 << 20, 512 << 20};
  setrlimit(RLIMIT_AS, &limit);
  std::vector<std::unique_ptr<std::array<char, 1 << 24>>> held;
  for (;;) held.push_back(std::make_unique<std::array<char, 1 << 24>>());
}

// Fails as often as the file named by MOEGAUGE_TEST_FAILURES says, counting down.
std::optional<Fault> fail_some_times() {
  const char* file = std::getenv("MOEGAUGE_TEST_FAILURES");
  int left = 0;
  if (file != nullptr) std::ifstream(file) >> left;
  if (left == 0) return std::nullopt;
  std::ofstream(file) << left - 1;
  return Fault{FaultKind::infrastructure, "the driver is still starting"};
}

std::optional<Fault> write_everywhere() {
  for (int fd = 1; fd < 32; ++fd) {
    [[maybe_unused]] const ssize_t ignored = ::write(fd, "not a reply\n", 12);
  }
  return std::nullopt;
}

// Ends and leaves a process behind that is in no group of ours and holds the reply pipe.
std::optional<Fault> leave_a_process_behind() {
  if (::fork() != 0) std::_Exit(7);
  ::setsid();
  for (const int fd : {0, 1, 2}) ::close(fd);  // those of the test
  ::sleep(30);
  std::_Exit(0);
}

// Dies as an oracle would that crashes: with its phase on the page that the parent reads.
std::optional<Fault> die_as_the_oracle() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("moegauge-in-flight") == std::string::npos) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells where the page is as text
    auto* page = reinterpret_cast<InFlightPage*>(std::stoull(line, nullptr, 16));
    page->phase = static_cast<std::uint32_t>(Phase::truth);
  }
  return die(SIGSEGV);
}

template <typename Act>
Script at_run(const char* name, int moment, Act act) {
  return {.name = name, .on_run = [moment, act](int run) -> std::optional<Fault> {
            return run == moment ? act() : std::nullopt;
          }};
}

// Of the backends that are tuned: block sizes and what a call takes with them, in microseconds. The
// default is 16.
constexpr std::int64_t kDefault = 16, kOnePercent = 17, kBest = 32, kGood = 64, kWrong = 128,
                       kCrashes = 256, kHangs = 512;
// Between keys: there the best config is none.
constexpr std::int64_t kWeakSpot = 6;

double tuned_seconds(const Config& config, std::int64_t tokens) {
  switch (config.values.at("BLOCK_SIZE_M")) {
    case kOnePercent:
      return 99e-6;
    case kBest:
      return tokens == kWeakSpot ? 130e-6 : 80e-6;
    case kGood:
      return 90e-6;
    case kWrong:
      return 50e-6;
    default:
      return 100e-6;
  }
}

Script tunable(const char* name, std::initializer_list<std::int64_t> blocks) {
  Script script{.name = name, .seconds_of = &tuned_seconds};
  for (const std::int64_t block : blocks) {
    script.candidates.push_back({.values = {{"BLOCK_SIZE_M", block}}});
  }
  script.on_run_of = [](const Config& config) -> std::optional<Fault> {
    const std::int64_t block = config.values.at("BLOCK_SIZE_M");
    if (block == kCrashes) return die(SIGSEGV);
    if (block == kHangs) sleep_forever();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    return std::nullopt;
  };
  script.spoil_of = [](const Config& config, std::span<std::uint16_t> y) {
    if (config.values.at("BLOCK_SIZE_M") == kWrong) std::ranges::fill(y, std::uint16_t{0});
  };
  return script;
}

// 32 is best in the first process that loads weights, the search's, and bad in any later one. They
// are counted in the file named by MOEGAUGE_TEST_LOADS.
Script fleeting() {
  static int loads = 0;
  Script script = tunable("fleeting", {kBest});
  script.on_load = []() -> std::optional<Fault> {
    const char* file = std::getenv("MOEGAUGE_TEST_LOADS");
    if (file == nullptr) return std::nullopt;
    std::ifstream(file) >> loads;
    std::ofstream(file) << ++loads;
    return std::nullopt;
  };
  script.seconds_of = [](const Config& config, std::int64_t tokens) {
    const bool later = loads > 1 && config.values.at("BLOCK_SIZE_M") == kBest;
    return later ? 130e-6 : tuned_seconds(config, tokens);
  };
  return script;
}

// As a machine whose processes differ: by 0, +2%, -2% and again, in ln of the latency. They are
// counted in the file named by MOEGAUGE_TEST_LOADS. MOEGAUGE_TEST_FACTOR makes all slower, as
// another build would be.
Script noisy() {
  static double factor = 1;
  Script script{.name = "noisy"};
  script.on_load = []() -> std::optional<Fault> {
    if (const char* slower = std::getenv("MOEGAUGE_TEST_FACTOR")) factor = std::atof(slower);
    const char* file = std::getenv("MOEGAUGE_TEST_LOADS");
    if (file == nullptr) return std::nullopt;
    int loads = 0;
    std::ifstream(file) >> loads;
    std::ofstream(file) << loads + 1;
    factor *= std::exp(std::array{0.0, 0.02, -0.02}[static_cast<std::size_t>(loads % 3)]);
    return std::nullopt;
  };
  script.on_run = [](int) -> std::optional<Fault> {
    return std::getenv("MOEGAUGE_TEST_CRASHES") != nullptr ? die(SIGSEGV) : std::nullopt;
  };
  script.seconds_of = [](const Config&, std::int64_t) { return 100e-6 * factor; };
  return script;
}

std::vector<Script> scripts() {
  const auto slow = [](int) -> std::optional<Fault> {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return std::nullopt;
  };
  const auto stubborn = []() -> std::optional<Fault> {
    std::signal(SIGTERM, SIG_IGN);
    sleep_forever();
  };
  const auto one_bit = [](std::span<std::uint16_t> y, int run) {
    if (run == kRepeated && !y.empty()) y.front() ^= 1;
  };
  const auto late_nan = [](std::span<std::uint16_t> y, int run) {
    if (run >= kTimedRow && !y.empty()) y.back() = 0x7FC0;
  };
  const auto zeros = [](std::span<std::uint16_t> y, int) {
    std::ranges::fill(y, std::uint16_t{0});
  };
  return {
      {.name = "honest"},
      {.name = "slow", .on_run = slow},
      at_run("segfault", kFirstLaunch, [] { return die(SIGSEGV); }),
      at_run("segfault_late", kTimedRow, [] { return die(SIGSEGV); }),
      {.name = "segfault_load", .on_load = [] { return die(SIGSEGV); }},
      at_run("oracle_segfault", kFirstLaunch, die_as_the_oracle),
      at_run("abort", kFirstLaunch, [] { return die(SIGABRT); }),
      at_run("exit", kFirstLaunch, []() -> std::optional<Fault> { std::_Exit(7); }),
      at_run("hang", kFirstLaunch, []() -> std::optional<Fault> { sleep_forever(); }),
      at_run("stubborn", kFirstLaunch, stubborn),
      at_run("memory", kFirstLaunch, exhaust_memory),
      at_run("throws", kFirstLaunch,
             []() -> std::optional<Fault> { throw std::runtime_error("a kernel threw"); }),
      at_run("fault", kTimedRow,
             []() -> std::optional<Fault> {
               return Fault{FaultKind::error, "illegal memory access"};
             }),
      {.name = "device_memory",
       .on_plan = []() -> std::optional<Fault> {
         return Fault{FaultKind::out_of_memory, "0 of 8 GiB left"};
       }},
      {.name = "flaky", .on_load = fail_some_times},
      at_run("prints", kFirstLaunch,
             []() -> std::optional<Fault> {
               std::puts("{\"point_done\": true}");
               std::fflush(stdout);
               return std::nullopt;
             }),
      at_run("leaves_a_process", kFirstLaunch, leave_a_process_behind),
      at_run("scribbles", kFirstLaunch, write_everywhere),
      {.name = "wavers", .spoil = one_bit},
      {.name = "late_nan", .spoil = late_nan},
      {.name = "zeros", .spoil = zeros},
      {.name = "gone", .present = false},
      {.name = "refuser", .refusal = Refusal{RefusalReason::shape, "nothing is served here"}},
      {.name = "choosy",
       .config_refusal = Refusal{RefusalReason::config_value, "BLOCK_SIZE_M 16 is odd"}},
      tunable("tunable", {kDefault, kOnePercent, kWrong, kGood, kBest}),
      tunable("treacherous", {kCrashes, kGood, kHangs, kBest}),
      tunable("settled", {kDefault, kOnePercent}),
      fleeting(),
      noisy(),
  };
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  std::vector<moegauge::ScriptedBackend> scripted;
  for (auto& script : moegauge::scripts()) scripted.emplace_back(std::move(script));
  std::vector<const moegauge::Backend*> backends;
  for (const auto& backend : scripted) backends.push_back(&backend);
  return moegauge::run_command_line(argc, argv, {std::cout, std::cerr, backends});
}
