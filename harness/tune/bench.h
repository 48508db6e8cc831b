// Where a search's times come from: worker processes, and a journal of what they gave.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/tune/search.h"
#include "harness/tune/tune_journal.h"
#include "harness/worker/point_runner.h"

namespace moegauge {

class TuneBench {
 public:
  // `cases`: all that may be asked for, of one layer and scheme. All but them are kept by
  // reference; `journal` may be null.
  TuneBench(std::vector<CaseCoordinates> cases, const RunnerSettings& settings,
            const RunnerHooks& hooks, TuneJournal* journal);

  std::vector<CaseRecord> measure(const TuneRequest& request);
  // A steady clock on which a request that the journal answers takes as long as it took: a search
  // that is resumed does what it did.
  double seconds() const;
  // Before a key's first request: what it will need is compiled, many at once.
  void compile_ahead(const KeyPlan& plan);
  // Why nothing further is measured, or nothing.
  std::optional<std::string> stop_reason() const { return runner_.stop_reason(); }

 private:
  std::size_t index_of(std::int64_t tokens, const std::string& config) const;

  const std::vector<CaseCoordinates> cases_;
  TuneJournal* const journal_;
  Group group_;
  std::map<std::pair<std::int64_t, std::string>, std::size_t> places_;
  std::vector<std::optional<CaseRecord>> records_;
  std::set<std::string> compiled_;  // configs
  std::string tag_;                 // of the request being measured
  double replayed_seconds_ = 0;
  const RunnerHooks own_hooks_;
  PointRunner runner_;
};

// The cases of a search: the default and every config of every key, with the other coordinates of
// `asked`.
std::vector<CaseCoordinates> search_cases(const CaseCoordinates& asked,
                                          const std::vector<KeyPlan>& plans);

// Measures the cases of a run as `run` does, but for those that the journal holds under `tag`.
std::vector<CaseRecord> run_journaled(const std::vector<CaseCoordinates>& cases,
                                      const std::string& tag, const RunnerSettings& settings,
                                      const RunnerHooks& hooks, TuneJournal* journal);

}  // namespace moegauge
