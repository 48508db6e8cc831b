// A history of 10,000 runs of 500 cases, as the commands meet it: `history add` of one more result,
// `history trend` of one case, `gate --history` of a result. The history is made first, run after
// run in the order of time as nights would, which takes minutes, in the folder for temporary files
// (TMPDIR), and removed at the end; its size is the counter `gigabytes`. MOEGAUGE_HISTORY_RUNS
// makes it shorter, for a look; MOEGAUGE_HISTORY_DB names a file that it is kept in, and taken from
// where it is there.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/commands/command.h"
#include "harness/history/store.h"
#include "harness/history/utc.h"
#include "harness/judge/fake_result.h"
#include "harness/result/result_io.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t cases = 500;
const std::string model = "qwen3-30b-a3b";
constexpr std::int64_t start = 1'500'000'000, apart = 3'600;  // a run an hour

std::int64_t runs() {
  const char* asked = std::getenv("MOEGAUGE_HISTORY_RUNS");
  return asked != nullptr ? std::atoll(asked) : 10'000;
}

std::string hash_of(std::int64_t number) {
  std::ostringstream text;
  text << std::hex << 0x1000000000000000 + number;
  return text.str();
}

// The kernel changes every tenth run, all latencies by 1.4% from run to run, and those of every
// seventh case by 4% in the middle.
class Nights {
 public:
  Nights() {
    for (std::int64_t tokens = 1; tokens <= cases; ++tokens) {
      base_.cases.push_back(fake_case(tokens, 20.0 + 2.5 * static_cast<double>(tokens)));
      base_.cases.back().coordinates.model = model;
    }
    base_.context = {{"suite", "bench"}, {"seed", "7"}, {"commit", ""}, {"commit_time", ""}};
  }

  Result result(std::int64_t run) {
    Result result = base_;
    const std::string time = utc_text(start + apart * run);
    result.machine = {{"date", time.substr(0, 19) + "+00:00"}};
    result.context[2].second = hash_of(run);
    result.context[3].second = time;
    for (std::size_t i = 0; i < result.cases.size(); ++i) {
      scale_latency(result.cases[i], factor(run, i));
      result.cases[i].config.hash = hash_of(run / 10);
    }
    return result;
  }

  // The same, without the way through a file.
  RunSummary summary(std::int64_t run) {
    if (summary_.cases.empty()) summary_ = summarise(result(0), {}, "bench");
    RunSummary summary = summary_;
    summary.run.content = "made-" + std::to_string(run);
    summary.run.commit = hash_of(run);
    summary.run.run_time = start + apart * run;
    summary.run.commit_time = summary.run.run_time;
    for (std::size_t i = 0; i < summary.cases.size(); ++i) {
      HistoryPoint& point = summary.cases[i].point;
      const double by = factor(run, i);
      for (double* us : {&point.median, &point.ci_low, &point.ci_high, &point.centre}) *us *= by;
      point.kernel = hash_of(run / 10);
    }
    return summary;
  }

 private:
  double factor(std::int64_t run, std::size_t i) {
    const double step = i % 7 == 0 && run >= runs() - 250 ? 1.04 : 1;
    return step * normal_(random_);
  }

  Result base_;
  RunSummary summary_;
  std::mt19937_64 random_{1};
  std::normal_distribution<double> normal_{1, 0.014};
};

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("moegauge-history-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

struct Made {
  Folder folder;
  Nights nights;
  std::int64_t next = runs();
  std::string db() const {
    const char* kept = std::getenv("MOEGAUGE_HISTORY_DB");
    return kept != nullptr ? kept : folder.file("history.db");
  }

  // A folder in memory is where 10,000 transactions take minutes and not an hour.
  Made() {
    if (fs::exists(db())) {
      next = static_cast<std::int64_t>(open_history(db(), HistoryAccess::existing)->runs().size());
      return;
    }
    const fs::path memory =
        "/dev/shm/" + fs::path(folder.file("x")).parent_path().filename().string() + ".db";
    const std::string made = fs::is_directory("/dev/shm") ? memory.string() : db();
    {
      const auto store = open_history(made, HistoryAccess::create);
      for (std::int64_t run = 0; run < runs(); ++run) {
        store->add(nights.summary(run), "bench", start);
        if (run % 1000 == 999) std::cerr << run + 1 << " runs\n";
      }
    }
    if (made == db()) return;
    fs::copy_file(made, db());
    fs::remove(made);
  }
};

Made& made() {
  static Made one;
  return one;
}

void command(const std::vector<std::string>& words, int most = exit_ok) {
  std::vector<const char*> argv = {"moegauge"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  const int code = run_command_line(static_cast<int>(argv.size()), argv.data(), {out, err, {}});
  if (code > most) throw std::runtime_error(words.front() + ": " + err.str() + out.str());
}

void count(benchmark::State& state) {
  state.counters["runs"] = static_cast<double>(runs());
  state.counters["cases"] = static_cast<double>(cases);
  state.counters["gigabytes"] = static_cast<double>(fs::file_size(made().db())) / 1e9;
}

void history_add(benchmark::State& state) {
  Made& history = made();
  for (auto _ : state) {
    state.PauseTiming();
    const std::string file = history.folder.file("new.json");
    write_result(file, history.nights.result(history.next++));
    state.ResumeTiming();
    command({"history", "add", file, "--db", history.db()});
  }
  count(state);
}

std::string stepped_case() {
  CaseRecord record = fake_case(8, 1);
  record.coordinates.model = model;
  return record.id();
}

void history_trend(benchmark::State& state) {
  const std::string id = stepped_case();
  for (auto _ : state) command({"history", "trend", id, "--db", made().db()});
  count(state);
}

void history_trend_of_all_runs(benchmark::State& state) {
  const std::string id = stepped_case();
  for (auto _ : state) {
    command({"history", "trend", id, "--db", made().db(), "--last", "1000000"});
  }
  count(state);
}

void gate_history(benchmark::State& state) {
  Made& history = made();
  const std::string file = history.folder.file("judged.json");
  write_result(file, history.nights.result(runs() + 1000));
  for (auto _ : state) command({"gate", file, "--history", history.db()}, exit_gate_failed);
  count(state);
}

BENCHMARK(history_add)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(10);
BENCHMARK(history_trend)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(history_trend_of_all_runs)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(gate_history)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace moegauge

BENCHMARK_MAIN();
