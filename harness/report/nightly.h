// What a page shows of a history: the newest runs of the cases that its results hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/history/trend.h"
#include "harness/result/record.h"

namespace moegauge {

struct Nightly {
  std::string name = {};
  std::vector<HistoryRun> runs = {};
  std::vector<Trend> trends = {};                    // those that changed last stand first
  std::map<std::int64_t, std::string> configs = {};  // "BLOCK_SIZE_M=16" by HistoryPoint::variant
  std::vector<bool> holds_result = {};               // of each result: whether it was added already
  std::size_t unknown = 0;   // cases of the results that have no run there on their device
  std::size_t left_out = 0;  // cases for which the page has no room
};

// So that a page of a nightly stays under 3 MB: with more cases each shows fewer runs, and where
// that would be fewer than the least, fewer cases are shown.
struct NightlyRoom {
  std::size_t points = 20'000, most_runs = 120, least_runs = 20;
};

// Throws InputError, as the store does.
Nightly nightly_of(HistoryStore& store, const std::string& name,
                   const std::vector<const Result*>& results, const NightlyRoom& room = {});

}  // namespace moegauge
