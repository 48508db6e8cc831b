#include "harness/history/sqlite_series.h"

#include <algorithm>
#include <utility>

#include "reference/base/fnv1a.h"

namespace moegauge::sqlite {
namespace {

constexpr std::int64_t flag_unstable = 1, flag_suspect = 2, flag_held = 4;

}  // namespace

const SeriesTables::NameTable SeriesTables::case_table = {
    "SELECT case_id FROM cases WHERE id = ?", "SELECT coalesce(max(case_id), 0) + 1 FROM cases",
    "INSERT INTO cases VALUES(?, ?, ?)"};
const SeriesTables::NameTable SeriesTables::device_table = {
    "SELECT device_id FROM devices WHERE device = ?",
    "SELECT coalesce(max(device_id), 0) + 1 FROM devices", "INSERT INTO devices VALUES(?, ?, ?)"};
const SeriesTables::NameTable SeriesTables::kernel_table = {
    "SELECT kernel_id FROM kernels WHERE hash = ?",
    "SELECT coalesce(max(kernel_id), 0) + 1 FROM kernels", "INSERT INTO kernels VALUES(?, ?, ?)"};

std::map<std::int64_t, std::string> SeriesTables::names_in(const char* sql) {
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

// The number of a name in its table; it is added where it is new.
std::int64_t SeriesTables::id_of(const std::string& name, const NameTable& table) {
  {
    Query query = database_.query(table.find);
    query.bind(name);
    if (query.step()) return query.integer();
  }
  const std::int64_t id = number_of(database_, table.next);
  database_.query(table.insert).bind(id).bind(name).bind_sum().run();
  return id;
}

std::int64_t SeriesTables::variant_id(const CaseSummary& one) {
  const std::string hash = fnv1a_hex(one.variant) + "-" + std::to_string(one.variant.size());
  {
    Query query = database_.query("SELECT variant_id FROM variants WHERE hash = ?");
    query.bind(hash);
    if (query.step()) return query.integer();
  }
  const std::int64_t id =
      number_of(database_, "SELECT coalesce(max(variant_id), 0) + 1 FROM variants");
  Query query = database_.query("INSERT INTO variants VALUES(?, ?, ?, ?, ?)");
  query.bind(id).bind(hash).bind(one.point.config).bind(one.variant).bind_sum().run();
  return id;
}

std::string SeriesTables::kernel_at(std::int64_t id) {
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

const SeriesTables::Variant& SeriesTables::variant_at(std::int64_t id) {
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

std::vector<HistoryPoint> SeriesTables::read_points(Query& query, std::int64_t series,
                                                    std::optional<std::int64_t> from,
                                                    std::size_t most) {
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
    p.held = (flags & flag_held) != 0;
    p.kernel = kernel_at(kernel);
    p.config = variant_at(p.variant).config;
    list.push_back(std::move(p));
  }
  return list;
}

std::vector<HistorySeries> SeriesTables::series() {
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

std::vector<HistoryPoint> SeriesTables::points(const HistorySeries& series, std::size_t most) {
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

std::vector<HistoryPoint> SeriesTables::points_from(const HistorySeries& series, std::int64_t from,
                                                    std::size_t most) {
  Query query = database_.query(
      "SELECT series_id, time, run_id, status, flags, kernel_id, variant_id, median, ci_low, "
      "ci_high, centre, within, implementation, quantization, total, worst_implementation, "
      "worst_quantization, worst_total, sum FROM points WHERE series_id = ? AND time >= ? "
      "ORDER BY time, run_id LIMIT ?");
  return read_points(query, series.id, from, most);
}

void SeriesTables::write_point(std::int64_t series, const HistoryRun& run, const CaseSummary& one) {
  const HistoryPoint& p = one.point;
  const ErrorSummary& e = p.errors;
  const std::int64_t kernel = id_of(p.kernel, kernel_table);
  const std::int64_t variant = variant_id(one);
  const std::int64_t flags =
      (p.unstable ? flag_unstable : 0) | (p.suspect ? flag_suspect : 0) | (p.held ? flag_held : 0);
  Query query = database_.query(
      "REPLACE INTO points VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  query.bind(series)
      .bind(run.time())
      .bind(run.id)
      .bind(static_cast<std::int64_t>(p.status))
      .bind(flags);
  query.bind(kernel).bind(variant);
  for (const double number :
       {p.median, p.ci_low, p.ci_high, p.centre, p.within, e.implementation, e.quantization,
        e.total, e.worst_implementation, e.worst_quantization, e.worst_total}) {
    query.bind(number);
  }
  query.bind_sum().run();
}

SeriesTables::Row SeriesTables::row_of(std::int64_t name, std::int64_t device) {
  Query query = database_.query(
      "SELECT series_id, case_id, device_id, points, sum FROM series "
      "WHERE case_id = ? AND device_id = ?");
  query.bind(name).bind(device);
  if (!query.step()) return {};
  Row row{.id = query.integer()};
  query.integer();
  query.integer();
  row.points = query.integer();
  query.check_sum();
  return row;
}

std::int64_t SeriesTables::add_point(const HistoryRun& run, const CaseSummary& one) {
  const std::int64_t name = id_of(one.id, case_table);
  const std::int64_t device = id_of(one.device, device_table);
  Row row = row_of(name, device);
  if (row.id == 0) {
    row.id = number_of(database_, "SELECT coalesce(max(series_id), 0) + 1 FROM series");
  }
  {
    Query query = database_.query("REPLACE INTO series VALUES(?, ?, ?, ?, ?)");
    query.bind(row.id).bind(name).bind(device).bind(row.points + 1).bind_sum().run();
  }
  write_point(row.id, run, one);
  return row.id;
}

void SeriesTables::hold_back(const HistoryRun& run, const CaseSummary& one) {
  const Row row = row_of(id_of(one.id, case_table), id_of(one.device, device_table));
  if (row.id == 0) database_.corrupt("a case of a run is missing");
  write_point(row.id, run, one);
}

std::vector<std::int64_t> SeriesTables::runs_of(const HistorySeries& series) {
  Query query = database_.query("SELECT run_id FROM points WHERE series_id = ?");
  query.bind(series.id);
  std::vector<std::int64_t> runs;
  while (query.step()) runs.push_back(query.integer());
  return runs;
}

}  // namespace moegauge::sqlite
