#include <algorithm>

#include "harness/export/end_to_end_numbers.h"
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

// A time of serving as one row: it was measured once.
Json time_row(const ExportedNumber& number, std::int64_t family, bool median) {
  const std::string id = number.full_id();
  Json row = {{"name", median ? id + "_median" : id},
              {"family_index", family},
              {"per_family_instance_index", 0},
              {"run_name", id},
              {"run_type", median ? "aggregate" : "iteration"},
              {"repetitions", 1},
              {"repetition_index", 0},
              {"threads", 1}};
  if (median) {
    row.erase("repetition_index");
    row["aggregate_name"] = "median";
    row["aggregate_unit"] = "time";
  }
  row["iterations"] = 1;
  row["real_time"] = row["cpu_time"] = number.value;
  row["time_unit"] = number.unit;
  return row;
}

bool is_time(const ExportedNumber& number) {
  return number.unit == "ms" && number.better == GoodDirection::lower_is_better;
}

Exported benchmark_json(const Result& result, bool medians_only) {
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
  std::size_t others = 0;
  for (const ExportedNumber& number : exported_numbers(result)) {
    if (is_time(number)) {
      rows.push_back(time_row(number, family++, medians_only));
    } else {
      ++others;
    }
  }
  return {
      .text = pretty({{"context", std::move(context)}, {"benchmarks", std::move(rows)}}),
      .count = static_cast<std::size_t>(family),
      .left_out = left_out(others, "its rows are times, which rates, counts and scores are not")};
}

std::string range_text(double half) { return "± " + Json(half).dump(); }

Json action_entry(const ExportedNumber& number) {
  Json entry = {{"name", number.full_id()}, {"unit", number.unit}, {"value", number.value}};
  if (number.standard_error) entry["range"] = range_text(*number.standard_error);
  entry["extra"] = number.row->source.text();
  return entry;
}

// Numbers of which `better` is better; how many others that could be judged there are.
std::size_t put_numbers(const Result& result, GoodDirection better, Json& list) {
  std::size_t others = 0;
  for (const ExportedNumber& number : exported_numbers(result)) {
    if (number.better == better) {
      list.push_back(action_entry(number));
    } else {
      ++others;
    }
  }
  return others;
}

}  // namespace

Exported google_benchmark(const ReportInput& input, const ExportOptions&) {
  return benchmark_json(only_result(input, "google-benchmark"), false);
}

Exported google_benchmark_medians(const ReportInput& input, const ExportOptions&) {
  return benchmark_json(only_result(input, "google-benchmark-median"), true);
}

Exported github_action_benchmark(const ReportInput& input, const ExportOptions&) {
  const Result& result = only_result(input, "github-action-benchmark");
  Json list = Json::array();
  for (const CaseRecord& record : result.cases) {
    if (!record.measured()) continue;
    const LatencySummary& latency = record.measured()->latency;
    // The reader shows `range` after a plus-minus sign: the wider half of the interval.
    const double half = std::max(latency.median - latency.ci_low, latency.ci_high - latency.median);
    list.push_back({{"name", record.id()},
                    {"unit", "us"},
                    {"value", latency.median},
                    {"range", range_text(half)},
                    {"extra", record.device + "\n" + record.repro}});
  }
  const std::size_t others = put_numbers(result, GoodDirection::lower_is_better, list);
  return {.text = pretty(list),
          .count = list.size(),
          .left_out = left_out(others,
                               "smaller is not better for them; "
                               "github-action-benchmark-bigger holds rates and scores")};
}

Exported github_action_benchmark_bigger(const ReportInput& input, const ExportOptions&) {
  const Result& result = only_result(input, "github-action-benchmark-bigger");
  Json list = Json::array();
  const std::size_t others = put_numbers(result, GoodDirection::higher_is_better, list);
  return {.text = pretty(list),
          .count = list.size(),
          .left_out = left_out(others,
                               "bigger is not better for them; github-action-benchmark "
                               "holds times")};
}

Exported vega_spec(const ReportInput& input, const ExportOptions& options) {
  std::string names;
  for (const Chart& chart : all_charts()) {
    names += (names.empty() ? "" : ", ") + chart.name;
    if (chart.name != options.chart) continue;
    const ReportRows rows = rows_of(input, options.judgements);
    const Json spec = chart_with_data(chart.name, rows);
    const Json& drawn = spec.at("datasets").begin().value();
    const bool of_rows = spec.at("data").at("name") == "end_to_end";
    return {.text = pretty(spec),
            .count = drawn.size(),
            .left_out =
                left_out(of_rows ? rows.end_to_end.size() - drawn.size() : rows.end_to_end.size(),
                         of_rows ? "it draws gains over a --baseline that has them too"
                                 : "it draws cases; --chart end_to_end draws them")};
  }
  throw InputError("--chart " + options.chart, "no such chart", names);
}

}  // namespace moegauge
