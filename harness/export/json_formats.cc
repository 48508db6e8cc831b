#include <algorithm>
#include <set>

#include "harness/export/export.h"
#include "harness/report/page.h"
#include "harness/result/benchmark_rows.h"
#include "harness/result/json_fields.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

std::string pretty(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A name stands for one thing in these formats.
const Result& only_result(const ReportInput& input, const char* format) {
  if (input.files.size() == 1) return input.files[0].result;
  throw InputError(input.files[1].name, std::string(format) + " holds one result",
                   "export each by itself");
}

Json benchmark_json(const Result& result, bool medians_only) {
  Json context = result.machine.is_object() ? result.machine : Json::object();
  for (const auto& [key, value] : result.context) context[key] = value;
  Json rows = Json::array();
  std::int64_t family = 0;
  for (const CaseRecord& record : result.cases) {
    for (Json& row : benchmark_rows(record, family)) {
      if (!medians_only || row.value("aggregate_name", "") == "median")
        rows.push_back(std::move(row));
    }
    if (record.measured()) ++family;
  }
  return {{"context", std::move(context)}, {"benchmarks", std::move(rows)}};
}

}  // namespace

std::string google_benchmark(const ReportInput& input, const ExportOptions&) {
  return pretty(benchmark_json(only_result(input, "google-benchmark"), false));
}

std::string google_benchmark_medians(const ReportInput& input, const ExportOptions&) {
  return pretty(benchmark_json(only_result(input, "google-benchmark-median"), true));
}

std::string github_action_benchmark(const ReportInput& input, const ExportOptions&) {
  Json list = Json::array();
  for (const CaseRecord& record : only_result(input, "github-action-benchmark").cases) {
    if (!record.measured()) continue;
    const LatencySummary& latency = record.measured()->latency;
    // The reader shows `range` after a plus-minus sign: the wider half of the interval.
    const double half = std::max(latency.median - latency.ci_low, latency.ci_high - latency.median);
    list.push_back({{"name", record.id()},
                    {"unit", "us"},
                    {"value", latency.median},
                    {"range", "± " + Json(half).dump()},
                    {"extra", record.device + "\n" + record.repro}});
  }
  return pretty(list);
}

std::string vega_spec(const ReportInput& input, const ExportOptions& options) {
  for (const Chart& chart : all_charts()) {
    if (chart.name == options.chart) return pretty(chart_with_data(chart.name, rows_of(input, {})));
  }
  std::string names;
  for (const Chart& chart : all_charts()) names += (names.empty() ? "" : ", ") + chart.name;
  throw InputError("--chart " + options.chart, "no such chart", names);
}

}  // namespace moegauge
