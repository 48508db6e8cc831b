// What a gate holds a result against when it is given a history: of each case the last runs that
// are ok and were not held back, on the same device key and with the same config, and the anchor,
// which slow drift does not carry along.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/history/store.h"
#include "harness/judge/evidence.h"
#include "harness/judge/judge.h"

namespace moegauge {

struct HistoryBaselineSettings {
  std::size_t last = 10;     // runs of the rolling baseline
  std::string filter = "*";  // cases that take part
};

// One of the two: records that stand for its runs, and their latencies.
struct HistorySide {
  Result result = {};
  Evidence evidence = {};
  std::map<std::string, std::string> runs = {};  // by case id: "runs 41 to 50", "the anchor, run 1"
};

struct HistoryBaseline {
  HistorySide rolling = {}, anchor = {};
  std::map<std::string, std::string> unknown = {};  // cases with no run to compare with: why
};

// The spread between processes is that of `calibration`, and where it has none, of the history: of
// the baseline's runs and of earlier ones, two after the other, so that no change of level counts.
// Runs of the results themselves do not take part, whether or not they were added. Cases that the
// newest run of the same suite had ok and no result has are in `rolling` too.
HistoryBaseline history_baseline(HistoryStore& store, const std::vector<Result>& results,
                                 const Calibration& calibration,
                                 const HistoryBaselineSettings& settings);

// The verdicts against the rolling baseline, with what the anchor adds to them: a failure against
// it fails; whatever else it says is stated and decides nothing. Each sentence names its runs.
Judgement judge_against(const HistoryBaseline& baseline, const Judgement& against_rolling,
                        const Judgement& against_anchor, const std::string& how_to_accept);

// Cases of the judged results that must not be what later ones are held against, unless somebody
// accepts them: those that fail, and those that the history's runs cannot be compared with (another
// executed scheme, other inputs). Of a judgement that known issues have not excused yet. A case
// that is new to the history, and one that is inconclusive, is not held back: without these nothing
// would ever begin, or only the fast nights of a noisy machine would count.
std::set<std::string> to_hold_back(const Judgement& judgement, const HistoryBaseline& baseline);

// Moves the anchors of the cases of `result` that match the glob `cases` to its run, which must be
// in the history. Throws InputError. Returns a line for each.
std::vector<std::string> accept_into_history(HistoryStore& store, const Result& result,
                                             const std::string& where, const std::string& cases,
                                             const std::string& reason, const std::string& who,
                                             std::int64_t now);

}  // namespace moegauge
