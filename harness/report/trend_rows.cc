// Cases that several results hold, over the results' dates.
#include <map>

#include "harness/report/row_parts.h"

namespace moegauge {
namespace {

struct Anchor {
  std::string date = {};
  double median = 0;
  std::size_t results = 0;
};

std::string date_of(const ReportFile& file) {
  const nlohmann::ordered_json& machine = file.result.machine;
  if (!machine.is_object() || !machine.contains("date") || !machine["date"].is_string()) return "";
  return machine["date"].get<std::string>();
}

// The earliest result of each case, and of how many dates it is.
std::map<std::string, Anchor> anchors_of(const ReportInput& input) {
  std::map<std::string, Anchor> anchors;
  for (const ReportFile& file : input.files) {
    const std::string date = date_of(file);
    for (const CaseRecord& record : file.result.cases) {
      if (!record.measured() || date.empty() || record.coordinates.tokens == 0) continue;
      Anchor& anchor = anchors[record.id() + "\n" + record.device];
      ++anchor.results;
      // ISO 8601 dates of one offset sort as text; the tool writes all in UTC.
      if (anchor.results > 1 && anchor.date <= date) continue;
      anchor.date = date;
      anchor.median = record.measured()->latency.median;
    }
  }
  return anchors;
}

void anchor_at_baseline(const ReportFile& baseline, std::map<std::string, Anchor>& anchors) {
  for (const CaseRecord& record : baseline.result.cases) {
    const auto found = anchors.find(record.id() + "\n" + record.device);
    if (record.measured() && found != anchors.end())
      found->second.median = record.measured()->latency.median;
  }
}

}  // namespace

std::vector<Row> trend_rows(const ReportInput& input, const Varying& varying) {
  std::map<std::string, Anchor> anchors = anchors_of(input);
  if (input.baseline) anchor_at_baseline(*input.baseline, anchors);
  std::vector<Row> rows;
  for (const ReportFile& file : input.files) {
    for (const CaseRecord& record : file.result.cases) {
      const auto found = anchors.find(record.id() + "\n" + record.device);
      if (!record.measured() || found == anchors.end()) continue;
      const Anchor& anchor = found->second;
      if (anchor.results < 2 || !(anchor.median > 0)) continue;
      const Measured& measured = *record.measured();
      Row row = coordinates_row(record, file, varying);
      row["id"] = record.id();
      row["rival"] = row["backend"].get<std::string>() + " · " + row["config"].get<std::string>();
      row["date"] = date_of(file);
      row["median"] = measured.latency.median;
      row["low"] = measured.latency.ci_low;
      row["high"] = measured.latency.ci_high;
      row["over_anchor"] = measured.latency.median / anchor.median;
      row["limit"] = input.policy.latency_rule(record.coordinates).ratio_limit;
      put_finite(row, "total", measured.check.error.total.relative_l2);
      row["values"] = values_text(record.config);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace moegauge
