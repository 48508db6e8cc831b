// The runs of a history, one row for each case and run.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "harness/history/utc.h"
#include "harness/judge/numbers.h"
#include "harness/report/row_parts.h"

namespace moegauge {
namespace {

constexpr std::size_t short_commit = 10;

// A case of the results, by its id and the device as the history knows it.
using RecordKey = std::pair<std::string, std::string>;
struct FoundRecord {
  std::size_t file = 0;
  const CaseRecord* record = nullptr;
};
using Records = std::map<RecordKey, std::vector<FoundRecord>>;

Records records_of(const ReportInput& input) {
  Records records;
  for (std::size_t i = 0; i < input.files.size(); ++i) {
    const Result& result = input.files[i].result;
    for (const CaseRecord& record : result.cases)
      records[{record.id(), history_device_key(record.device, result)}].push_back({i, &record});
  }
  return records;
}

// Runs are in the order of their commits. Where they were measured in that order too, the night of
// the measurement is what people look for: many nights may measure one commit.
bool measured_in_order(const std::vector<HistoryRun>& runs) {
  return std::ranges::is_sorted(runs, {}, &HistoryRun::run_time);
}

// Five digits after the point are more than any interval; the medians beside it are whole.
double rounded_ratio(double ratio) { return std::round(ratio * 1e5) / 1e5; }

// Six significant digits, of numbers that stand in a page many times.
double short_us(double us) {
  if (!(us > 0) || !std::isfinite(us)) return us;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(us)));
  return std::round(us * scale) / scale;
}

// "-7.7% (kernel)"
std::string change_text(const TrendChange& change) {
  const auto size = change.size();
  return (size ? format_change(*size) : std::string("from 0")) + " (" + change.cause() + ")";
}

void put_changes(Row& row, const Trend& trend, std::size_t at) {
  std::vector<std::string> errors;
  for (const TrendChange& change : trend.changes) {
    if (change.first_after != at) continue;
    if (!change.of_latency()) {
      errors.push_back(change.subject + " " + change_text(change));
      continue;
    }
    row["change"] = change_text(change);
    if (const auto size = change.size()) row["change_size"] = rounded_ratio(*size);
    // Its name has room on that side.
    row["side"] = 2 * at < trend.points.size() ? "right" : "left";
  }
  if (!errors.empty()) row["error_change"] = joined(errors, ", ");
}

class HistoryWriter {
 public:
  HistoryWriter(const ReportInput& input, const Varying& varying)
      : input_(input),
        nightly_(*input.nightly),
        varying_(varying),
        records_(records_of(input)),
        by_measurement_(measured_in_order(nightly_.runs)) {
    for (const HistoryRun& run : nightly_.runs) runs_[run.id] = &run;
  }

  void write(const Trend& trend, std::vector<Row>& rows) const {
    const std::vector<FoundRecord>* records = find(trend);
    if (records == nullptr) return;
    const double anchor = anchor_of(trend);
    if (!(anchor > 0)) return;
    const CaseRecord& like = *records->front().record;
    Row base = coordinates_row(like, input_.files[records->front().file], varying_);
    base.erase("file");
    base["id"] = trend.id;
    base["panel"] =
        base["panel"].get<std::string>() + " · M=" + std::to_string(like.coordinates.tokens);
    base["rival"] = base["backend"].get<std::string>() + " · " + base["config"].get<std::string>();
    base["anchor"] = anchor;
    base["limit"] = input_.policy.latency_rule(like.coordinates).ratio_limit;
    for (std::size_t i = 0; i < trend.points.size(); ++i) rows.push_back(point_row(base, trend, i));
    for (const FoundRecord& found : *records) put_result(base, found, rows);
  }

 private:
  const std::vector<FoundRecord>* find(const Trend& trend) const {
    std::vector<std::string> names = {trend.id};
    names.insert(names.end(), trend.older_names.begin(), trend.older_names.end());
    for (const std::string& name : names) {
      if (const auto found = records_.find({name, trend.device}); found != records_.end())
        return &found->second;
    }
    return nullptr;
  }

  static bool has_latency(const HistoryPoint& point) {
    return point.status == Status::ok && !point.suspect && point.median > 0;
  }

  // As the store has it: the first run that counts until somebody sets another. Where none counts,
  // as with very few samples, the first of those shown; 0 where nothing has a latency.
  static double anchor_of(const Trend& trend) {
    if (trend.anchor && trend.anchor->median > 0) return trend.anchor->median;
    const auto first = std::ranges::find_if(trend.points, has_latency);
    return first == trend.points.end() ? 0 : first->median;
  }

  Row point_row(const Row& base, const Trend& trend, std::size_t at) const {
    const HistoryPoint& point = trend.points[at];
    Row row = base;
    const auto run = runs_.find(point.run);
    row["run"] = point.run;
    row["date"] =
        utc_text(by_measurement_ && run != runs_.end() ? run->second->run_time : point.time);
    if (run != runs_.end() && !run->second->commit.empty())
      row["commit"] = run->second->commit.substr(0, short_commit);
    if (has_latency(point)) {
      put_latency(row, point.median, point.ci_low, point.ci_high);
    } else {
      row["failed"] = point.suspect ? "suspect" : std::string(to_string(point.status));
    }
    put_finite(row, "implementation", point.errors.implementation);
    put_finite(row, "total", point.errors.total);
    if (const auto found = nightly_.configs.find(point.variant); found != nightly_.configs.end())
      row["values"] = found->second;
    put_changes(row, trend, at);
    if (trend.anchor && trend.anchor->run == point.run) row["anchor_run"] = true;
    return row;
  }

  static void put_latency(Row& row, double median, double low, double high) {
    row["median"] = median;
    put_finite(row, "low", short_us(low));
    put_finite(row, "high", short_us(high));
    row["over_anchor"] = rounded_ratio(median / row["anchor"].get<double>());
  }

  // A result that the history does not hold yet: what is asked about.
  void put_result(const Row& base, const FoundRecord& found, std::vector<Row>& rows) const {
    if (nightly_.holds_result[found.file]) return;
    const ReportFile& file = input_.files[found.file];
    const auto date = date_of(file.result);
    if (!date) return;
    Row row = base;
    row["date"] = utc_text(*date);
    row["now"] = file.name;
    const std::string commit = context_value(file.result, "commit");
    if (!commit.empty()) row["commit"] = commit.substr(0, short_commit);
    const CaseRecord& record = *found.record;
    if (const Measured* measured = record.measured(); measured && !measured->suspect) {
      put_latency(row, measured->latency.median, measured->latency.ci_low,
                  measured->latency.ci_high);
      put_finite(row, "implementation", measured->check.error.implementation.relative_l2);
      put_finite(row, "total", measured->check.error.total.relative_l2);
    } else {
      row["failed"] = measured ? "suspect" : std::string(to_string(record.status()));
    }
    row["values"] = values_text(record.config);
    rows.push_back(std::move(row));
  }

  std::optional<std::int64_t> date_of(const Result& result) const {
    const auto& machine = result.machine;
    const bool dated =
        machine.is_object() && machine.contains("date") && machine["date"].is_string();
    const auto measured = dated ? utc_seconds(machine["date"].get<std::string>()) : std::nullopt;
    if (by_measurement_) return measured;
    const auto committed = utc_seconds(context_value(result, "commit_time"));
    return committed ? committed : measured;
  }

  const ReportInput& input_;
  const Nightly& nightly_;
  const Varying& varying_;
  const Records records_;
  const bool by_measurement_;
  std::map<std::int64_t, const HistoryRun*> runs_;
};

}  // namespace

std::vector<Row> history_rows(const ReportInput& input, const Varying& varying) {
  std::vector<Row> rows;
  if (!input.nightly) return rows;
  const HistoryWriter writer(input, varying);
  for (const Trend& trend : input.nightly->trends) writer.write(trend, rows);
  return rows;
}

}  // namespace moegauge
