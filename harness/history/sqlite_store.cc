#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "harness/history/names.h"
#include "harness/history/schema.h"
#include "harness/history/sqlite.h"
#include "harness/history/sqlite_runs.h"
#include "harness/history/sqlite_series.h"
#include "harness/history/store.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::Transaction;

using CaseOnDevice = std::pair<std::string, std::string>;

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

class SqliteStore final : public HistoryStore {
 public:
  SqliteStore(const fs::path& file, HistoryAccess access)
      : database_(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                            (access == HistoryAccess::create ? SQLITE_OPEN_CREATE : 0)) {
    database_.run("PRAGMA synchronous = EXTRA");  // the removal of the journal is on the disk too
    database_.run("PRAGMA cache_size = -65536");  // KiB
    database_.run("PRAGMA cell_size_check = ON");
    sqlite::require_schema(database_, access == HistoryAccess::create);
    // One state for all that is read until something is written, also where others write meanwhile.
    reading_.emplace(database_, "BEGIN");
    runs_.check_totals();
  }

  Added add(const RunSummary& summary, const std::string& who, std::int64_t now) override {
    reading_.reset();
    Transaction transaction(database_);
    if (const auto known = runs_.run_of(summary.run.content)) {
      hold_back(*known, summary);
      transaction.commit();
      return {.run = *known, .already = true};
    }
    runs_.check_totals();
    HistoryRun run = summary.run;
    run.id = runs_.add_run(run);
    add_cases(run, summary, who, now);
    runs_.keep_totals();
    transaction.commit();
    return {.run = run.id};
  }

  std::optional<std::int64_t> run_of(const std::string& content) override {
    return runs_.run_of(content);
  }
  std::vector<HistoryRun> runs() override { return runs_.runs(); }
  std::vector<HistorySeries> series() override { return series_.series(); }
  std::vector<HistoryPoint> points(const HistorySeries& series, std::size_t most) override {
    return series_.points(series, most);
  }
  std::vector<HistoryPoint> points_from(const HistorySeries& series, std::int64_t from,
                                        std::size_t most) override {
    return series_.points_from(series, from, most);
  }
  std::string variant(std::int64_t id) override { return series_.variant(id); }
  std::vector<HistoryAnchor> anchors() override { return runs_.anchors(); }
  std::vector<HistoryRename> renames() override { return runs_.renames(); }

  void set_anchors(const std::vector<HistoryAnchor>& anchors) override {
    reading_.reset();
    Transaction transaction(database_);
    runs_.check_totals();
    for (const HistoryAnchor& anchor : anchors) runs_.add_anchor(anchor);
    runs_.keep_totals();
    transaction.commit();
  }

  void rename(const std::vector<HistoryRename>& added) override {
    reading_.reset();
    Transaction transaction(database_);
    runs_.check_totals();
    std::vector<HistoryRename> all = runs_.renames();
    all.insert(all.end(), added.begin(), added.end());
    refuse_two_in_one_run(CaseNames(all));
    runs_.add_renames(added);
    runs_.keep_totals();
    transaction.commit();
  }

 private:
  void add_cases(const HistoryRun& run, const RunSummary& summary, const std::string& who,
                 std::int64_t now) {
    const CaseNames names(runs_.renames());
    std::map<CaseOnDevice, std::int64_t> unanchored_before = automatic_until(names);
    std::set<CaseOnDevice> seen;
    for (const CaseSummary& one : summary.cases) {
      const CaseOnDevice key(names.newest(one.id), one.device);
      if (!seen.insert(key).second) {
        throw InputError(one.id, "the result has this case under an older name too",
                         "by the history's renames they are one");
      }
      const std::int64_t series = series_.add_point(run, one);
      // The first by its time, in whatever order runs are added.
      const auto until = unanchored_before.try_emplace(key, never).first;
      if (one.point.serves() && run.time() < until->second) {
        until->second = run.time();
        runs_.add_anchor({.series = series,
                          .run = run.id,
                          .time = run.time(),
                          .set_at = now,
                          .who = who,
                          .reason = first_anchor_reason});
      }
    }
  }

  // A run that was added before it was judged.
  void hold_back(std::int64_t id, const RunSummary& summary) {
    const std::vector<HistoryRun> runs = runs_.runs();
    for (const HistoryRun& run : runs) {
      if (run.id != id) continue;
      for (const CaseSummary& one : summary.cases) {
        if (one.point.held) series_.hold_back(run, one);
      }
    }
  }

  // By case the time of the first run that is its anchor; where somebody set one, no run is
  // earlier.
  std::map<CaseOnDevice, std::int64_t> automatic_until(const CaseNames& names) {
    std::map<std::int64_t, std::int64_t> by_series;
    for (const HistoryAnchor& anchor : runs_.anchors()) {
      const std::int64_t until = anchor.reason == first_anchor_reason
                                     ? anchor.time
                                     : std::numeric_limits<std::int64_t>::min();
      const auto known = by_series.try_emplace(anchor.series, until).first;
      known->second = std::min(known->second, until);
    }
    std::map<CaseOnDevice, std::int64_t> by_case;
    for (const HistorySeries& one : series_.series()) {
      const auto found = by_series.find(one.id);
      if (found == by_series.end()) continue;
      const auto known =
          by_case.try_emplace({names.newest(one.case_id), one.device}, found->second).first;
      known->second = std::min(known->second, found->second);
    }
    return by_case;
  }

  void refuse_two_in_one_run(const CaseNames& names) {
    std::map<CaseOnDevice, std::vector<HistorySeries>> families;
    for (const HistorySeries& one : series_.series()) {
      families[{names.newest(one.case_id), one.device}].push_back(one);
    }
    for (const auto& [key, family] : families) {
      if (family.size() < 2) continue;
      std::map<std::int64_t, std::string> seen;
      for (const HistorySeries& one : family) {
        for (const std::int64_t run : series_.runs_of(one)) {
          const auto [other, is_new] = seen.emplace(run, one.case_id);
          if (is_new) continue;
          throw InputError(one.case_id,
                           "run " + std::to_string(run) + " has it and " + other->second +
                               ", so that they are two cases",
                           "rename only what one name took the place of");
        }
      }
    }
  }

  Database database_;
  sqlite::RunTables runs_{database_};
  sqlite::SeriesTables series_{database_};
  // A command that reads sees one state of the history from beginning to end.
  std::optional<Transaction> reading_;
};

}  // namespace

bool history_is_built() { return true; }

std::unique_ptr<HistoryStore> open_history(const fs::path& file, HistoryAccess access) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (!fs::exists(status)) {
    if (access == HistoryAccess::existing) {
      throw InputError(file.string(), "there is no such history",
                       "moegauge history add RESULT --db FILE makes one");
    }
  } else if (!fs::is_regular_file(status)) {
    throw InputError(file.string(), "no file", "name a file that holds, or is to hold, a history");
  }
  return std::make_unique<SqliteStore>(file, access);
}

}  // namespace moegauge
