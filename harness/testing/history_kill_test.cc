// `run`, `history add`, `gate --add`, `gate --accept` and `merge` killed at random moments: what
// was reported done is there, what was not is not, and the next command goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <sstream>
#include <thread>

#include "harness/history/families.h"
#include "harness/history/store.h"
#include "harness/history/utc.h"
#include "harness/judge/fake_result.h"
#include "harness/result/record_testing.h"
#include "harness/result/result_io.h"
#include "harness/result/shards.h"
#include "harness/testing/command.h"

#ifndef MOEGAUGE_KILLS
#define MOEGAUGE_KILLS 10
#endif

namespace moegauge {
namespace {

namespace fs = std::filesystem;

constexpr int files = 12;
constexpr std::int64_t cases = 60;

class Killed : public testing::Test {
 protected:
  Killed() {
    for (int n = 0; n < files; ++n) write_result(file(n), result(n));
  }
  void SetUp() override {
    if (!history_is_built()) GTEST_SKIP() << "this build has no SQLite";
  }
  std::string path(const std::string& name) const { return folder_.path() / name; }
  std::string file(int n) const { return path("night" + std::to_string(n) + ".json"); }
  std::string db() const { return path("h.db"); }
  static Result result(int n) {
    Result result;
    const std::string time = utc_text(1'790'000'000 + 86'400 * n);
    result.machine = {{"date", time.substr(0, 19) + "+00:00"}};
    result.context = {{"suite", "fake"}, {"seed", "7"}};
    for (std::int64_t tokens = 1; tokens <= cases; ++tokens) {
      result.cases.push_back(fake_case(tokens, 100 + n));
    }
    return result;
  }
  std::vector<std::string> adding() const {
    std::vector<std::string> words = {"history", "add"};
    for (int n = 0; n < files; ++n) words.push_back(file(n));
    words.insert(words.end(), {"--db", db()});
    return words;
  }
  Finished run(const std::vector<std::string>& words) const {
    return run_command(MOEGAUGE_WITH_FAULTS, words, folder_.path());
  }
  double seconds_of(const std::vector<std::string>& words) const {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(words).code, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  // After a random part of `seconds`.
  Finished run_and_kill(const std::vector<std::string>& words, double seconds) {
    Running running(MOEGAUGE_WITH_FAULTS, words, folder_.path());
    const double part = static_cast<double>(random_() % 1000) / 1000;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds * part));
    running.signal(SIGKILL);
    return running.wait();
  }
  void remove_history() const {
    for (const char* more : {"", "-journal"}) fs::remove(db() + more);
  }

  TestFolder folder_;
  std::mt19937_64 random_{4};
};

// Every run that is there is whole; returns how many there are.
std::size_t whole_runs(const std::string& file) {
  const auto store = open_history(file, HistoryAccess::existing);
  const std::size_t runs = store->runs().size();
  for (const HistorySeries& series : store->series()) {
    EXPECT_EQ(store->points(series, 1000).size(), runs) << series.case_id;
  }
  EXPECT_EQ(store->anchors().size(), runs > 0 ? static_cast<std::size_t>(cases) : 0);
  return runs;
}

TEST_F(Killed, AdditionsAreWholeOrNotThereAndNoneThatWasReportedIsLost) {
  const double seconds = seconds_of(adding());
  std::size_t in_the_middle = 0;
  for (int kill = 0; kill < MOEGAUGE_KILLS; ++kill) {
    remove_history();
    const Finished killed = run_and_kill(adding(), seconds);
    const auto reported =
        static_cast<std::size_t>(std::count(killed.out.begin(), killed.out.end(), '\n'));
    if (fs::exists(db()) && fs::file_size(db()) > 0) {
      const std::size_t runs = whole_runs(db());
      EXPECT_GE(runs, reported);
      EXPECT_LE(runs, reported + 1) << "at most one was done and not yet reported";
      in_the_middle += runs > 0 && runs < files;
    } else {
      EXPECT_EQ(reported, 0u);
    }
    const Finished again = run(adding());
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(whole_runs(db()), static_cast<std::size_t>(files));
  }
  EXPECT_GT(in_the_middle, 0u) << "the test killed too early or too late every time";
}

// A kill may be anywhere in the judging, of the baseline's update, or after it.
TEST_F(Killed, AGateThatAddsLeavesTheRunWithWhatItHeldBackOrNoneOfIt) {
  run(adding());
  Result slow = result(files);
  for (std::size_t i = 0; i < 10; ++i) scale_latency(slow.cases[i], 2);
  const std::string now = path("now.json");
  write_result(now, slow);
  const std::vector<std::string> gate = {"gate", now, "--history", db(), "--add"};
  const std::string before = read_file(db());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run(gate).code, 1);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (int kill = 0; kill < MOEGAUGE_KILLS; ++kill) {
    remove_history();
    folder_.write("h.db", before);
    const Finished killed = run_and_kill(gate, seconds);
    const auto store = open_history(db(), HistoryAccess::existing);
    const bool added = store->runs().size() == files + 1;
    const bool reported = killed.out.find("added as run 13") != std::string::npos;
    EXPECT_TRUE(added || !reported);
    std::size_t held = 0;
    for (const HistorySeries& series : store->series())
      held += store->points(series, 1).front().held;
    EXPECT_EQ(held, added ? 10u : 0u);
  }
}

// Each run is killed a random while after it began, and gone on with, until it is through; then
// another one begins.
TEST_F(Killed, RunsKeepWhatTheyFinished) {
  const auto suite = folder_.suite(R"("tokens": [1, 2, 4, 8], "backend": "honest")");
  const std::vector<std::string> words = {"run", suite, "--out", path("r.json"), "--resume"};
  const double seconds = seconds_of(words);
  const auto begin_anew = [&] {
    for (const char* more : {"", ".journal"}) fs::remove(path("r.json") + more);
  };
  begin_anew();
  std::string journal;
  int kills = 0, finished = 0;
  for (int attempts = 0; kills < MOEGAUGE_KILLS && attempts < 20 * MOEGAUGE_KILLS; ++attempts) {
    const Finished killed = run_and_kill(words, seconds);
    if (killed.code == 0) {
      EXPECT_EQ(load_result(path("r.json")).result.cases.size(), 4u);
      begin_anew();
      journal.clear();
      ++finished;
      continue;
    }
    ++kills;
    const std::string now =
        fs::exists(path("r.json.journal")) ? read_file(path("r.json.journal")) : "";
    const std::size_t whole = journal.rfind('\n') + 1;  // a line cut short is written anew
    EXPECT_EQ(now.substr(0, whole), journal.substr(0, whole)) << "what was finished stands";
    journal = now;
  }
  EXPECT_EQ(kills, MOEGAUGE_KILLS) << finished << " were through before they were killed";
  EXPECT_EQ(run(words).code, 0);
  EXPECT_EQ(load_result(path("r.json")).result.cases.size(), 4u);
}

TEST_F(Killed, AcceptanceMovesAllAnchorsOrNone) {
  run(adding());
  const std::vector<std::string> accept = {"gate",     file(5), "--history", db(),
                                           "--accept", "*",     "--reason",  "on purpose"};
  const std::string before = read_file(db());
  const double seconds = seconds_of(accept);
  for (int kill = 0; kill < MOEGAUGE_KILLS; ++kill) {
    folder_.write("h.db", before);
    run_and_kill(accept, seconds);
    const auto store = open_history(db(), HistoryAccess::existing);
    std::size_t moved = 0;
    for (const HistoryAnchor& anchor : store->anchors()) moved += anchor.reason == "on purpose";
    EXPECT_TRUE(moved == 0 || moved == static_cast<std::size_t>(cases)) << moved;
  }
}

TEST_F(Killed, MergeLeavesTheOldFileOrTheNewOneWhole) {
  std::vector<std::string> words = {"merge"};
  Result whole = result(0);
  std::vector<CaseCoordinates> selection;
  for (const CaseRecord& record : whole.cases) selection.push_back(record.coordinates);
  for (std::size_t index = 1; index <= 4; ++index) {
    Result shard;
    shard.machine = whole.machine;
    shard.context = {{"suite", "fake"},
                     {"seed", "7"},
                     {shard_key, std::to_string(index) + "/4"},
                     {selection_key, selection_text(selection, "")},
                     {build_key, "b"}};
    for (std::size_t i = index - 1; i < whole.cases.size(); i += 4)
      shard.cases.push_back(whole.cases[i]);
    words.push_back(path("shard" + std::to_string(index) + ".json"));
    write_result(words.back(), shard);
  }
  words.insert(words.end(), {"--out", path("whole.json")});
  const double seconds = seconds_of(words);
  const std::string merged = read_file(path("whole.json"));
  EXPECT_EQ(load_result(path("whole.json")).result.cases.size(), whole.cases.size());
  for (int kill = 0; kill < MOEGAUGE_KILLS; ++kill) {
    folder_.write("whole.json", "old");
    run_and_kill(words, seconds);
    const std::string found = read_file(path("whole.json"));
    EXPECT_TRUE(found == "old" || found == merged) << found.size() << " bytes";
  }
}

TEST_F(Killed, WritersBesideEachOtherLoseNothing) {
  for (int round = 0; round < 3; ++round) {
    remove_history();
    const fs::path a = folder_.path() / "a", b = folder_.path() / "b";
    fs::create_directories(a);
    fs::create_directories(b);
    Running one(MOEGAUGE_WITH_FAULTS, adding(), a), other(MOEGAUGE_WITH_FAULTS, adding(), b);
    const Finished first = one.wait(), second = other.wait();
    EXPECT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(second.code, 0) << second.err;
    EXPECT_EQ(whole_runs(db()), static_cast<std::size_t>(files));
  }
}

// A night is judged and added while others are: it reads one state of the history.
TEST_F(Killed, AGateThatAddsBesideAWriterReadsAWholeHistory) {
  run({"history", "add", file(0), file(1), "--db", db()});
  const fs::path a = folder_.path() / "a";
  fs::create_directories(a);
  Running adder(MOEGAUGE_WITH_FAULTS, adding(), a);
  int damaged = 0;
  for (int n = 2; n < files; ++n) {
    const Finished gate = run({"gate", file(n), "--history", db(), "--add"});
    damaged += gate.code == 2;
    EXPECT_EQ(gate.err, "");
  }
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(adder.wait().code, 0);
  EXPECT_EQ(whole_runs(db()), static_cast<std::size_t>(files));
}

}  // namespace
}  // namespace moegauge
