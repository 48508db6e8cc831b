#include "harness/history/sqlite_runs.h"

#include <algorithm>
#include <utility>

namespace moegauge::sqlite {

std::optional<std::int64_t> RunTables::run_of(const std::string& content) {
  Query query = database_.query("SELECT run_id FROM runs WHERE content = ?");
  query.bind(content);
  if (!query.step()) return std::nullopt;
  return query.integer();
}

std::vector<HistoryRun> RunTables::runs() {
  Query query = database_.query(
      "SELECT run_id, content, commit_hash, commit_time, run_time, suite, cases, ok_cases, sum "
      "FROM runs");
  std::vector<HistoryRun> runs;
  while (query.step()) {
    HistoryRun run;
    run.id = query.integer();
    run.content = query.text();
    run.commit = query.text();
    if (!query.null()) run.commit_time = query.integer();
    run.run_time = query.integer();
    run.suite = query.text();
    run.cases = query.integer();
    run.ok_cases = query.integer();
    query.check_sum();
    runs.push_back(std::move(run));
  }
  std::ranges::stable_sort(runs, {}, [](const HistoryRun& r) { return std::pair(r.time(), r.id); });
  return runs;
}

std::int64_t RunTables::add_run(const HistoryRun& run) {
  const std::int64_t id = number_of(database_, "SELECT coalesce(max(run_id), 0) + 1 FROM runs");
  Query query = database_.query("INSERT INTO runs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
  query.bind(id).bind(run.content).bind(run.commit);
  if (run.commit_time) {
    query.bind(*run.commit_time);
  } else {
    query.bind_null();
  }
  query.bind(run.run_time).bind(run.suite).bind(run.cases).bind(run.ok_cases).bind_sum().run();
  return id;
}

std::vector<HistoryAnchor> RunTables::anchors() {
  Query query = database_.query(
      "SELECT anchor_id, series_id, run_id, time, set_at, who, reason, sum FROM anchors "
      "ORDER BY anchor_id");
  std::vector<HistoryAnchor> list;
  while (query.step()) {
    query.integer();
    HistoryAnchor anchor;
    anchor.series = query.integer();
    anchor.run = query.integer();
    anchor.time = query.integer();
    anchor.set_at = query.integer();
    anchor.who = query.text();
    anchor.reason = query.text();
    query.check_sum();
    list.push_back(std::move(anchor));
  }
  return list;
}

void RunTables::add_anchor(const HistoryAnchor& anchor) {
  const std::int64_t id =
      number_of(database_, "SELECT coalesce(max(anchor_id), 0) + 1 FROM anchors");
  Query query = database_.query("INSERT INTO anchors VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
  query.bind(id).bind(anchor.series).bind(anchor.run).bind(anchor.time).bind(anchor.set_at);
  query.bind(anchor.who).bind(anchor.reason).bind_sum().run();
}

std::vector<HistoryRename> RunTables::renames() {
  Query query = database_.query(
      "SELECT rename_id, from_id, to_id, set_at, who, sum FROM renames ORDER BY rename_id");
  std::vector<HistoryRename> list;
  while (query.step()) {
    query.integer();
    HistoryRename one;
    one.from = query.text();
    one.to = query.text();
    one.set_at = query.integer();
    one.who = query.text();
    query.check_sum();
    list.push_back(std::move(one));
  }
  return list;
}

RunTables::Totals RunTables::counted() {
  return {number_of(database_, "SELECT count(*) FROM runs NOT INDEXED"),
          number_of(database_, "SELECT count(*) FROM series"),
          number_of(database_, "SELECT count(*) FROM anchors NOT INDEXED"),
          number_of(database_, "SELECT count(*) FROM renames")};
}

void RunTables::check_totals() {
  Totals expected = {};
  Query query = database_.query("SELECT one, runs, series, anchors, renames, sum FROM totals");
  if (query.step()) {
    query.integer();
    for (std::int64_t& total : expected) total = query.integer();
    query.check_sum();
  }
  if (counted() != expected) database_.corrupt("rows are missing");
}

void RunTables::keep_totals() {
  const Totals totals = counted();
  Query query = database_.query("REPLACE INTO totals VALUES(?, ?, ?, ?, ?, ?)");
  query.bind(std::int64_t{1});
  for (const std::int64_t total : totals) query.bind(total);
  query.bind_sum().run();
}

void RunTables::add_renames(const std::vector<HistoryRename>& added) {
  std::int64_t id = number_of(database_, "SELECT coalesce(max(rename_id), 0) FROM renames");
  for (const HistoryRename& one : added) {
    Query query = database_.query("INSERT INTO renames VALUES(?, ?, ?, ?, ?, ?)");
    query.bind(++id).bind(one.from).bind(one.to).bind(one.set_at).bind(one.who).bind_sum().run();
  }
}

}  // namespace moegauge::sqlite
