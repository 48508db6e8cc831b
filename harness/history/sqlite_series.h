// What a case was in each run: series and their points, and the names that these stand for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/history/sqlite.h"
#include "harness/history/store.h"

namespace moegauge::sqlite {

class SeriesTables {
 public:
  explicit SeriesTables(Database& database) : database_(database) {}

  std::vector<HistorySeries> series();
  // In order of time; the newest `most` of them.
  std::vector<HistoryPoint> points(const HistorySeries& series, std::size_t most);
  // From `from` on, the oldest `most` of them.
  std::vector<HistoryPoint> points_from(const HistorySeries& series, std::int64_t from,
                                        std::size_t most);
  std::vector<std::int64_t> runs_of(const HistorySeries& series);
  std::string variant(std::int64_t id) { return variant_at(id).record; }

  // Returns the series of the case, which is new where it was not there.
  std::int64_t add_point(const HistoryRun& run, const CaseSummary& one);
  // Marks the point of a run that is there as one that is no baseline.
  void hold_back(const HistoryRun& run, const CaseSummary& one);

 private:
  struct Row {
    std::int64_t id = 0, points = 0;  // 0: not there
  };
  struct Variant {
    std::string config, record;
  };
  // Numbers are given here and not by SQLite, so that a row's sum is known when it is written.
  struct NameTable {
    const char *find, *next, *insert;
  };
  static const NameTable case_table, device_table, kernel_table;

  std::map<std::int64_t, std::string> names_in(const char* sql);
  std::int64_t id_of(const std::string& name, const NameTable& table);
  std::int64_t variant_id(const CaseSummary& one);
  std::string kernel_at(std::int64_t id);
  const Variant& variant_at(std::int64_t id);
  Row row_of(std::int64_t name, std::int64_t device);
  void write_point(std::int64_t series, const HistoryRun& run, const CaseSummary& one);
  std::vector<HistoryPoint> read_points(Query& query, std::int64_t series,
                                        std::optional<std::int64_t> from, std::size_t most);

  Database& database_;
  std::map<std::int64_t, std::string> kernels_;
  std::map<std::int64_t, Variant> variants_;
};

}  // namespace moegauge::sqlite
