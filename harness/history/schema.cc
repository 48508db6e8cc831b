#include "harness/history/schema.h"

#include <string>

#include "reference/base/input_error.h"

namespace moegauge::sqlite {
namespace {

constexpr std::int64_t application = 0x4d4f4547;  // "MOEG"
constexpr std::int64_t version = 1;

// Names stand once, in tables of their own: millions of points are then of numbers alone, and those
// of a series lie together in order of time, so that both a trend and the newest few are one
// stretch. Each `sum` is of the columns before it (Query::bind_sum).
constexpr const char* tables = R"sql(
CREATE TABLE cases(case_id INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, sum INTEGER NOT NULL);
CREATE TABLE devices(
  device_id INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE, sum INTEGER NOT NULL);
CREATE TABLE series(
  series_id INTEGER PRIMARY KEY, case_id INTEGER NOT NULL, device_id INTEGER NOT NULL,
  points INTEGER NOT NULL, sum INTEGER NOT NULL, UNIQUE(case_id, device_id));
CREATE TABLE kernels(kernel_id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, sum INTEGER NOT NULL);
CREATE TABLE variants(
  variant_id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, config TEXT NOT NULL,
  record TEXT NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE runs(
  run_id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE, commit_hash TEXT NOT NULL,
  commit_time INTEGER, run_time INTEGER NOT NULL, suite TEXT NOT NULL, cases INTEGER NOT NULL,
  ok_cases INTEGER NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE points(
  series_id INTEGER NOT NULL, time INTEGER NOT NULL, run_id INTEGER NOT NULL,
  status INTEGER NOT NULL, flags INTEGER NOT NULL, kernel_id INTEGER NOT NULL,
  variant_id INTEGER NOT NULL, median REAL, ci_low REAL, ci_high REAL, centre REAL, within REAL,
  implementation REAL, quantization REAL, total REAL, worst_implementation REAL,
  worst_quantization REAL, worst_total REAL, sum INTEGER NOT NULL,
  PRIMARY KEY(series_id, time, run_id)) WITHOUT ROWID;
CREATE TABLE anchors(
  anchor_id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL, run_id INTEGER NOT NULL,
  time INTEGER NOT NULL, set_at INTEGER NOT NULL, who TEXT NOT NULL, reason TEXT NOT NULL,
  sum INTEGER NOT NULL);
CREATE TABLE renames(
  rename_id INTEGER PRIMARY KEY, from_id TEXT NOT NULL, to_id TEXT NOT NULL,
  set_at INTEGER NOT NULL, who TEXT NOT NULL, sum INTEGER NOT NULL);
-- How many rows there are to be: a damaged page loses some without a word.
CREATE TABLE totals(
  one INTEGER PRIMARY KEY, runs INTEGER NOT NULL, series INTEGER NOT NULL,
  anchors INTEGER NOT NULL, renames INTEGER NOT NULL, sum INTEGER NOT NULL);
CREATE TRIGGER anchors_stay BEFORE UPDATE ON anchors
  BEGIN SELECT RAISE(ABORT, 'an anchor is never changed'); END;
CREATE TRIGGER anchors_remain BEFORE DELETE ON anchors
  BEGIN SELECT RAISE(ABORT, 'an anchor is never removed'); END;
)sql";

bool is_empty(Database& database) {
  return number_of(database, "SELECT count(*) FROM sqlite_master") == 0;
}

void make_tables(Database& database) {
  Transaction transaction(database);
  if (is_empty(database)) {
    database.run(tables);
    database.run(("PRAGMA application_id = " + std::to_string(application)).c_str());
    database.run(("PRAGMA user_version = " + std::to_string(version)).c_str());
  }
  transaction.commit();
}

}  // namespace

void require_schema(Database& database, bool create) {
  const std::string where = database.file().string();
  std::int64_t found = number_of(database, "PRAGMA application_id");
  // Another process may make them at any moment, also between two looks.
  if (found == 0 && create) {
    if (is_empty(database)) make_tables(database);
    found = number_of(database, "PRAGMA application_id");
  }
  if (found != application) {
    throw InputError(where,
                     is_empty(database) ? "an empty history" : "a database of something else",
                     "a file that moegauge history add made is expected");
  }
  const std::int64_t its = number_of(database, "PRAGMA user_version");
  if (its > version) {
    throw InputError(where, "the history is of version " + std::to_string(its),
                     "this moegauge reads version " + std::to_string(version) +
                         "; use the newer one that wrote it");
  }
  if (its != version) database.corrupt("no version");
}

}  // namespace moegauge::sqlite
