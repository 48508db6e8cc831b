// A whole tuning of one layer and scheme: search every key, write the file, read it back through
// the run path on fresh weights and inputs, correct what that shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/tune/decide.h"
#include "harness/tune/key_plan.h"
#include "harness/tune/search.h"
#include "harness/tune/tune_journal.h"
#include "harness/worker/runner.h"

namespace moegauge {

struct TuneSetup {
  CaseCoordinates asked = {};  // all but tokens and config
  Problem problem = {};
  const Backend* backend = nullptr;
  std::vector<std::int64_t> tokens = {};
  ConfigTable base = {};  // without entries: there is none
  double min_win = 0.02;
  std::size_t max_candidates = 32;
  SearchSettings search = {};
  bool check_between = true;
  RunnerSettings runner = {};      // its budget is that of everything together
  std::filesystem::path out = {};  // of the file
  // Where it stands until it was read back.
  std::filesystem::path draft = {};
  std::map<std::string, std::string> metadata = {};  // beside that of table_metadata
  std::function<void(const KeyPlan&)> key_done = [](const KeyPlan&) {};
};

std::vector<KeyPlan> plan_keys(const TuneSetup& setup);

// A record at one batch size, from the file and by default, interleaved.
struct ReadBack {
  CaseRecord standard, tuned;
};

struct TuneOutcome {
  std::vector<KeyDecision> decisions = {};  // those added between keys, too
  std::vector<std::int64_t> between = {};   // batch sizes between keys that were checked
  ConfigTable table = {};                   // as written; without entries: nothing was
  std::vector<CaseRecord> dropped = {};     // candidates without a latency
  std::size_t tried = 0, untried = 0;
  std::map<std::int64_t, ReadBack> read_back = {};  // under the name of `out`, once that is written
  std::vector<std::string> unproven = {};  // where the file was not read back as decided, and why
  std::string ended = {};                  // "budget", "interrupted": what cut it short
  bool held_back = false;  // cut short before all was read back: `draft` has it, `out` is as it was
};

// Throws InputError where the file cannot be written. `journal` may be null.
TuneOutcome tune(const TuneSetup& setup, const std::vector<KeyPlan>& plans,
                 const RunnerHooks& hooks, TuneJournal* journal);

// Upper bound of the records that a search of these keys and the final run make.
std::size_t records_at_most(const std::vector<KeyPlan>& plans, const SearchSettings& settings);

}  // namespace moegauge
