#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "harness/history/names.h"
#include "harness/history/schema.h"
#include "harness/history/sqlite.h"
#include "harness/history/store.h"
#include "reference/base/fnv1a.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;
using sqlite::Database;
using sqlite::Query;
using sqlite::Transaction;

constexpr std::int64_t flag_unstable = 1, flag_suspect = 2;

class SqliteStore final : public HistoryStore {
 public:
  SqliteStore(const fs::path& file, HistoryAccess access)
      : database_(file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                            (access == HistoryAccess::create ? SQLITE_OPEN_CREATE : 0)) {
    database_.run("PRAGMA synchronous = EXTRA");  // the removal of the journal is on the disk too
    database_.run("PRAGMA cache_size = -65536");  // KiB
    database_.run("PRAGMA cell_size_check = ON");
    sqlite::require_schema(database_, access == HistoryAccess::create);
    if (access == HistoryAccess::create) return;
    reading_.emplace(database_, "BEGIN");
    check_totals();
  }

  Added add(const RunSummary& summary, const std::string& who, std::int64_t now) override {
    reading_.reset();
    Transaction transaction(database_);
    if (const auto known = run_of(summary.run.content)) return {.run = *known, .already = true};
    check_totals();
    const CaseNames names(renames());
    std::set<std::pair<std::string, std::string>> anchored = anchored_cases(names);
    const std::int64_t run = add_run(summary.run);
    std::set<std::pair<std::string, std::string>> seen;
    for (const CaseSummary& one : summary.cases) {
      const std::pair key(names.newest(one.id), one.device);
      if (!seen.insert(key).second) {
        throw InputError(one.id, "the result has this case under an older name too",
                         "by the history's renames they are one");
      }
      const std::int64_t series = grown_series(one.id, one.device);
      add_point(series, run, summary.run.time(), one);
      if (one.point.counts() && anchored.insert(key).second) {
        add_anchor({.series = series,
                    .run = run,
                    .time = summary.run.time(),
                    .set_at = now,
                    .who = who,
                    .reason = first_anchor_reason});
      }
    }
    keep_totals();
    transaction.commit();
    return {.run = run};
  }

  std::optional<std::int64_t> run_of(const std::string& content) override {
    Query query = database_.query("SELECT run_id FROM runs WHERE content = ?");
    query.bind(content);
    if (!query.step()) return std::nullopt;
    return query.integer();
  }

  std::vector<HistoryRun> runs() override {
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
    std::ranges::stable_sort(runs, {},
                             [](const HistoryRun& r) { return std::pair(r.time(), r.id); });
    return runs;
  }

  std::vector<HistorySeries> series() override {
    const auto case_names = names_in("SELECT case_id, id, sum FROM cases");
    const auto device_names = names_in("SELECT device_id, device, sum FROM devices");
    Query query = database_.query("SELECT series_id, case_id, device_id, points, sum FROM series");
    std::vector<HistorySeries> list;
    while (query.step()) {
      HistorySeries one;
      one.id = query.integer();
      const auto name = case_names.find(query.integer());
      const auto device = device_names.find(query.integer());
      one.points = query.integer();
      query.check_sum();
      if (name == case_names.end() || device == device_names.end())
        database_.corrupt("a name is missing");
      one.case_id = name->second;
      one.device = device->second;
      list.push_back(std::move(one));
    }
    return list;
  }

  std::vector<HistoryPoint> points(const HistorySeries& series, std::size_t most) override {
    Query query = database_.query(
        "SELECT series_id, time, run_id, status, flags, kernel_id, variant_id, median, ci_low, "
        "ci_high, centre, within, implementation, quantization, total, worst_implementation, "
        "worst_quantization, worst_total, sum FROM points WHERE series_id = ? "
        "ORDER BY time DESC, run_id DESC LIMIT ?");
    std::vector<HistoryPoint> list = read_points(query, series.id, std::nullopt, most);
    if (list.size() != std::min(most, static_cast<std::size_t>(series.points))) {
      database_.corrupt("points of a case are missing");
    }
    std::ranges::reverse(list);
    return list;
  }

  std::vector<HistoryPoint> points_from(const HistorySeries& series, std::int64_t from,
                                        std::size_t most) override {
    Query query = database_.query(
        "SELECT series_id, time, run_id, status, flags, kernel_id, variant_id, median, ci_low, "
        "ci_high, centre, within, implementation, quantization, total, worst_implementation, "
        "worst_quantization, worst_total, sum FROM points WHERE series_id = ? AND time >= ? "
        "ORDER BY time, run_id LIMIT ?");
    return read_points(query, series.id, from, most);
  }

  std::string variant(std::int64_t id) override { return variant_at(id).record; }

  std::vector<HistoryAnchor> anchors() override {
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

  void set_anchors(const std::vector<HistoryAnchor>& anchors) override {
    reading_.reset();
    Transaction transaction(database_);
    check_totals();
    for (const HistoryAnchor& anchor : anchors) add_anchor(anchor);
    keep_totals();
    transaction.commit();
  }

  std::vector<HistoryRename> renames() override {
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

  void rename(const std::vector<HistoryRename>& added) override {
    reading_.reset();
    Transaction transaction(database_);
    check_totals();
    std::vector<HistoryRename> all = renames();
    std::int64_t id = static_cast<std::int64_t>(all.size());
    all.insert(all.end(), added.begin(), added.end());
    refuse_two_in_one_run(CaseNames(all));
    for (const HistoryRename& one : added) {
      Query query = database_.query("INSERT INTO renames VALUES(?, ?, ?, ?, ?, ?)");
      query.bind(++id).bind(one.from).bind(one.to).bind(one.set_at).bind(one.who).bind_sum().run();
    }
    keep_totals();
    transaction.commit();
  }

 private:
  struct Variant {
    std::string config, record;
  };

  std::map<std::int64_t, std::string> names_in(const char* sql) {
    Query query = database_.query(sql);
    std::map<std::int64_t, std::string> names;
    while (query.step()) {
      const std::int64_t id = query.integer();
      std::string name = query.text();
      query.check_sum();
      names.emplace(id, std::move(name));
    }
    return names;
  }

  // Numbers are given here and not by SQLite, so that a row's sum is known when it is written.
  struct NameTable {
    const char *find, *next, *insert;
  };
  static constexpr NameTable case_table = {"SELECT case_id FROM cases WHERE id = ?",
                                           "SELECT coalesce(max(case_id), 0) + 1 FROM cases",
                                           "INSERT INTO cases VALUES(?, ?, ?)"};
  static constexpr NameTable device_table = {"SELECT device_id FROM devices WHERE device = ?",
                                             "SELECT coalesce(max(device_id), 0) + 1 FROM devices",
                                             "INSERT INTO devices VALUES(?, ?, ?)"};
  static constexpr NameTable kernel_table = {"SELECT kernel_id FROM kernels WHERE hash = ?",
                                             "SELECT coalesce(max(kernel_id), 0) + 1 FROM kernels",
                                             "INSERT INTO kernels VALUES(?, ?, ?)"};
  // The number of a name in its table; it is added where it is new.
  std::int64_t id_of(const std::string& name, const NameTable& table) {
    {
      Query query = database_.query(table.find);
      query.bind(name);
      if (query.step()) return query.integer();
    }
    const std::int64_t id = number_of(table.next);
    database_.query(table.insert).bind(id).bind(name).bind_sum().run();
    return id;
  }

  std::int64_t number_of(const char* sql) {
    Query query = database_.query(sql);
    return query.step() ? query.integer() : 0;
  }

  using Totals = std::array<std::int64_t, 4>;

  Totals counted() {
    return {number_of("SELECT count(*) FROM runs NOT INDEXED"),
            number_of("SELECT count(*) FROM series"),
            number_of("SELECT count(*) FROM anchors NOT INDEXED"),
            number_of("SELECT count(*) FROM renames")};
  }

  void check_totals() {
    Totals expected = {};
    Query query = database_.query("SELECT one, runs, series, anchors, renames, sum FROM totals");
    if (query.step()) {
      query.integer();
      for (std::int64_t& total : expected) total = query.integer();
      query.check_sum();
    }
    if (counted() != expected) database_.corrupt("rows are missing");
  }

  void keep_totals() {
    const Totals totals = counted();
    Query query = database_.query("REPLACE INTO totals VALUES(?, ?, ?, ?, ?, ?)");
    query.bind(std::int64_t{1});
    for (const std::int64_t total : totals) query.bind(total);
    query.bind_sum().run();
  }

  std::int64_t add_run(const HistoryRun& run) {
    const std::int64_t id = number_of("SELECT coalesce(max(run_id), 0) + 1 FROM runs");
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

  std::int64_t grown_series(const std::string& case_id, const std::string& device) {
    const std::int64_t name = id_of(case_id, case_table);
    const std::int64_t on = id_of(device, device_table);
    std::int64_t id = 0, points = 0;
    {
      Query query = database_.query(
          "SELECT series_id, case_id, device_id, points, sum FROM series "
          "WHERE case_id = ? AND device_id = ?");
      query.bind(name).bind(on);
      if (query.step()) {
        id = query.integer();
        query.integer();
        query.integer();
        points = query.integer();
        query.check_sum();
      }
    }
    if (id == 0) id = number_of("SELECT coalesce(max(series_id), 0) + 1 FROM series");
    Query query = database_.query("REPLACE INTO series VALUES(?, ?, ?, ?, ?)");
    query.bind(id).bind(name).bind(on).bind(points + 1).bind_sum().run();
    return id;
  }

  std::int64_t variant_id(const CaseSummary& one) {
    const std::string hash = fnv1a_hex(one.variant) + "-" + std::to_string(one.variant.size());
    {
      Query query = database_.query("SELECT variant_id FROM variants WHERE hash = ?");
      query.bind(hash);
      if (query.step()) return query.integer();
    }
    const std::int64_t id = number_of("SELECT coalesce(max(variant_id), 0) + 1 FROM variants");
    Query query = database_.query("INSERT INTO variants VALUES(?, ?, ?, ?, ?)");
    query.bind(id).bind(hash).bind(one.point.config).bind(one.variant).bind_sum().run();
    return id;
  }

  void add_point(std::int64_t series, std::int64_t run, std::int64_t time, const CaseSummary& one) {
    const HistoryPoint& p = one.point;
    const ErrorSummary& e = p.errors;
    const std::int64_t kernel = id_of(p.kernel, kernel_table);
    const std::int64_t variant = variant_id(one);
    const std::int64_t flags = (p.unstable ? flag_unstable : 0) | (p.suspect ? flag_suspect : 0);
    Query query = database_.query(
        "INSERT INTO points VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    query.bind(series).bind(time).bind(run).bind(static_cast<std::int64_t>(p.status)).bind(flags);
    query.bind(kernel).bind(variant);
    for (const double number :
         {p.median, p.ci_low, p.ci_high, p.centre, p.within, e.implementation, e.quantization,
          e.total, e.worst_implementation, e.worst_quantization, e.worst_total}) {
      query.bind(number);
    }
    query.bind_sum().run();
  }

  void add_anchor(const HistoryAnchor& anchor) {
    const std::int64_t id = number_of("SELECT coalesce(max(anchor_id), 0) + 1 FROM anchors");
    Query query = database_.query("INSERT INTO anchors VALUES(?, ?, ?, ?, ?, ?, ?, ?)");
    query.bind(id).bind(anchor.series).bind(anchor.run).bind(anchor.time).bind(anchor.set_at);
    query.bind(anchor.who).bind(anchor.reason).bind_sum().run();
  }

  std::set<std::pair<std::string, std::string>> anchored_cases(const CaseNames& names) {
    std::set<std::int64_t> with;
    for (const HistoryAnchor& anchor : anchors()) with.insert(anchor.series);
    std::set<std::pair<std::string, std::string>> cases;
    for (const HistorySeries& one : series()) {
      if (with.contains(one.id)) cases.emplace(names.newest(one.case_id), one.device);
    }
    return cases;
  }

  void refuse_two_in_one_run(const CaseNames& names) {
    std::map<std::pair<std::string, std::string>, std::vector<HistorySeries>> families;
    for (const HistorySeries& one : series()) {
      families[{names.newest(one.case_id), one.device}].push_back(one);
    }
    for (const auto& [key, family] : families) {
      if (family.size() < 2) continue;
      std::map<std::int64_t, std::string> seen;
      for (const HistorySeries& one : family) {
        Query query = database_.query("SELECT run_id FROM points WHERE series_id = ?");
        query.bind(one.id);
        while (query.step()) {
          const std::int64_t run = query.integer();
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

  std::string kernel_at(std::int64_t id) {
    const auto [known, is_new] = kernels_.try_emplace(id);
    if (!is_new) return known->second;
    Query query = database_.query("SELECT kernel_id, hash, sum FROM kernels WHERE kernel_id = ?");
    query.bind(id);
    if (!query.step()) database_.corrupt("a kernel is missing");
    query.integer();
    known->second = query.text();
    query.check_sum();
    return known->second;
  }

  const Variant& variant_at(std::int64_t id) {
    const auto [known, is_new] = variants_.try_emplace(id);
    if (!is_new) return known->second;
    Query query = database_.query(
        "SELECT variant_id, hash, config, record, sum FROM variants WHERE variant_id = ?");
    query.bind(id);
    if (!query.step()) database_.corrupt("a variant is missing");
    query.integer();
    query.text();
    known->second.config = query.text();
    known->second.record = query.text();
    query.check_sum();
    return known->second;
  }

  std::vector<HistoryPoint> read_points(Query& query, std::int64_t series,
                                        std::optional<std::int64_t> from, std::size_t most) {
    query.bind(series);
    if (from) query.bind(*from);
    query.bind(static_cast<std::int64_t>(most));
    std::vector<HistoryPoint> list;
    while (query.step()) {
      HistoryPoint p;
      ErrorSummary& e = p.errors;
      query.integer();
      p.time = query.integer();
      p.run = query.integer();
      const std::int64_t status = query.integer(), flags = query.integer();
      const std::int64_t kernel = query.integer();
      p.variant = query.integer();
      for (double* number : {&p.median, &p.ci_low, &p.ci_high, &p.centre, &p.within,
                             &e.implementation, &e.quantization, &e.total, &e.worst_implementation,
                             &e.worst_quantization, &e.worst_total}) {
        *number = query.number();
      }
      query.check_sum();
      p.status = static_cast<Status>(status);
      p.unstable = (flags & flag_unstable) != 0;
      p.suspect = (flags & flag_suspect) != 0;
      p.kernel = kernel_at(kernel);
      p.config = variant_at(p.variant).config;
      list.push_back(std::move(p));
    }
    return list;
  }

  Database database_;
  // A command that reads sees one state of the history from beginning to end.
  std::optional<Transaction> reading_;
  std::map<std::int64_t, std::string> kernels_;
  std::map<std::int64_t, Variant> variants_;
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
