// Rows that stand once: runs, anchors, renames, and how many of each there are to be.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/sqlite.h"
#include "harness/history/store.h"

namespace moegauge::sqlite {

class RunTables {
 public:
  explicit RunTables(Database& database) : database_(database) {}

  std::optional<std::int64_t> run_of(const std::string& content);
  std::vector<HistoryRun> runs();  // in order of time
  std::int64_t add_run(const HistoryRun& run);

  std::vector<HistoryAnchor> anchors();  // the oldest first
  void add_anchor(const HistoryAnchor& anchor);

  std::vector<HistoryRename> renames();
  void add_renames(const std::vector<HistoryRename>& added);

  // A damaged page loses rows without a word: their numbers are kept, and compared.
  void check_totals();
  void keep_totals();

 private:
  using Totals = std::array<std::int64_t, 4>;
  Totals counted();

  Database& database_;
};

}  // namespace moegauge::sqlite
