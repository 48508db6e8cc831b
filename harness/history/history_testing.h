// Results of several nights, and a history of them in a file of its own, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/history/store.h"
#include "harness/history/utc.h"
#include "harness/judge/fake_result.h"
#include "harness/result/record_testing.h"

namespace moegauge {

inline const std::int64_t first_night = 1'790'000'000;  // 2026-09-21
inline constexpr std::int64_t day = 86'400;

// The three cases of fake_result() on the night after `number` others: committed at midnight,
// measured an hour later. Latencies differ by up to 1% from night to night, in no order.
inline Result night(int number, const std::function<void(Result&)>& change = {}) {
  Result result = fake_result();
  const std::int64_t committed = first_night + number * day;
  const std::string measured = utc_text(committed + 3600);
  result.machine = {{"date", measured.substr(0, 19) + "+00:00"}};
  result.context = {{"suite", "fake"},
                    {"seed", "7"},
                    {"commit", "commit-" + std::to_string(number)},
                    {"commit_time", utc_text(committed)}};
  double phase = number;
  for (CaseRecord& record : result.cases) {
    scale_latency(record, 1 + 0.01 * std::sin(7 * phase));
    phase += 0.5;
  }
  if (change) change(result);
  return result;
}

// Everything but the file.
class HistoryFile : public testing::Test {
 protected:
  HistoryFile() {
    file_ = test_folder() / ("moegauge_history_" + std::to_string(::getpid()) + ".db");
    remove();
  }
  ~HistoryFile() override { remove(); }
  void remove() const {
    for (const char* more : {"", "-journal"}) std::filesystem::remove(file_.string() + more);
  }

  std::unique_ptr<HistoryStore> open(HistoryAccess access = HistoryAccess::existing) const {
    return open_history(file_, access);
  }
  HistoryStore::Added add(const Result& result) const {
    return open(HistoryAccess::create)->add(summarise(result, {}, "r.json"), "me@here", 1);
  }
  void add_nights(int from, int to, const std::function<void(Result&)>& change = {}) const {
    for (int number = from; number < to; ++number) add(night(number, change));
  }

  std::filesystem::path file_;
};

}  // namespace moegauge
