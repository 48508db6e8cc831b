#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "harness/export/end_to_end_numbers.h"
#include "harness/export/export.h"
#include "harness/judge/escape.h"
#include "harness/judge/numbers.h"
#include "harness/result/json_fields.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// RFC 4180: quotes where the text needs them, doubled within.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

// Numbers as the result file has them, digit for digit.
std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

constexpr std::array coordinates = {"file",  "id",      "op",     "model",   "scheme",
                                    "layer", "backend", "config", "routing", "inputs",
                                    "cache", "launch",  "tokens", "device",  "status"};
struct Number {
  const char* name;   // in the row
  const char* title;  // with its unit
};
constexpr std::array<Number, 12> numbers = {{{"median", "median_us"},
                                             {"low", "ci_low_us"},
                                             {"high", "ci_high_us"},
                                             {"floor", "floor_us"},
                                             {"fraction", "floor_fraction"},
                                             {"tflops", "tflops"},
                                             {"gbytes", "gbytes_per_s"},
                                             {"implementation", "error_implementation"},
                                             {"quantization", "error_quantization"},
                                             {"total", "error_total"},
                                             {"worst_token", "error_worst_token"},
                                             {"experts", "experts"}}};

std::vector<std::string> coordinate_cells(const Row& row) {
  std::vector<std::string> cells;
  for (const char* name : coordinates) {
    const auto found = row.find(name);
    cells.push_back(found == row.end() ? "" : value_text(*found));
  }
  return cells;
}

std::string time_of(const ReportFile& file) {
  const Json& machine = file.result.machine;
  if (machine.is_object() && machine.contains("date") && machine["date"].is_string())
    return machine["date"].get<std::string>();
  throw InputError(file.name, "the result has no date", "csv-otava orders results by it");
}

// As coordinates: what a number of serving has not is empty.
std::vector<std::string> coordinate_cells(const ReportFile& file, const ExportedNumber& number) {
  Row row = {
      {"file", file.name}, {"id", number.id}, {"op", number.row->op}, {"model", number.row->model}};
  return coordinate_cells(row);
}

std::string cell_of(const Row& row, const char* name) {
  const auto found = row.find(name);
  return found == row.end() ? "" : value_text(*found);
}

}  // namespace

Exported csv_long(const ReportInput& input, const ExportOptions&) {
  std::vector<std::string> head(coordinates.begin(), coordinates.end());
  head.insert(head.end(), {"number", "value"});
  Exported made{.text = csv_line(head)};
  const auto put = [&](std::vector<std::string> cells, const std::string& name, const Json& value) {
    cells.insert(cells.end(), {name, value_text(value)});
    made.text += csv_line(cells);
    ++made.count;
  };
  for (const Row& row : rows_of(input, {}).cases) {
    for (const Number& number : numbers) {
      if (const auto found = row.find(number.name); found != row.end())
        put(coordinate_cells(row), number.title, *found);
    }
  }
  for (const ReportFile& file : input.files) {
    for (const ExportedNumber& number : exported_numbers(file.result))
      put(coordinate_cells(file, number), number.name, number.value);
  }
  return made;
}

namespace {

// A line per point; columns as `names` has them.
void put_points(const ReportFile& file, const std::vector<std::string>& names, Exported& made) {
  const std::vector<ExportedNumber> all = exported_numbers(file.result);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::map<std::string, double> values;
    for (; end < all.size() && all[end].row == all[begin].row; ++end)
      values[all[end].name] = all[end].value;
    std::vector<std::string> cells = coordinate_cells(file, all[begin]);
    cells.resize(cells.size() + numbers.size() + 1);
    for (const std::string& name : names) {
      const auto found = values.find(name);
      cells.push_back(found == values.end() ? "" : Json(found->second).dump());
    }
    made.text += csv_line(cells);
    ++made.count;
  }
}

}  // namespace

Exported csv_wide(const ReportInput& input, const ExportOptions&) {
  std::set<std::string> more;  // of serving and accuracy
  for (const ReportFile& file : input.files) {
    for (const ExportedNumber& number : exported_numbers(file.result)) more.insert(number.name);
  }
  const std::vector<std::string> names(more.begin(), more.end());
  std::vector<std::string> head(coordinates.begin(), coordinates.end());
  for (const Number& number : numbers) head.push_back(number.title);
  head.push_back("reason");
  head.insert(head.end(), names.begin(), names.end());
  Exported made{.text = csv_line(head)};
  for (const Row& row : rows_of(input, {}).cases) {
    std::vector<std::string> cells = coordinate_cells(row);
    for (const Number& number : numbers) cells.push_back(cell_of(row, number.name));
    cells.push_back(row.value("reason", ""));
    cells.resize(head.size());
    made.text += csv_line(cells);
    ++made.count;
  }
  for (const ReportFile& file : input.files) put_points(file, names, made);
  return made;
}

namespace {

// What has a direction: medians of cases, times, rates and scores.
std::vector<std::pair<std::string, double>> series_of(const Result& result) {
  std::vector<std::pair<std::string, double>> series;
  for (const CaseRecord& record : result.cases) {
    if (record.measured()) series.emplace_back(record.id(), record.measured()->latency.median);
  }
  for (const ExportedNumber& number : exported_numbers(result)) {
    if (number.better) series.emplace_back(number.full_id(), number.value);
  }
  return series;
}

}  // namespace

Exported csv_otava(const ReportInput& input, const ExportOptions&) {
  std::vector<const ReportFile*> files;
  for (const ReportFile& file : input.files) files.push_back(&file);
  std::ranges::stable_sort(files, {}, [](const ReportFile* file) { return time_of(*file); });
  std::vector<std::string> ids;
  std::set<std::string> known;
  std::size_t others = 0;
  for (const ReportFile* file : files) {
    for (const auto& [id, value] : series_of(file->result)) {
      if (known.insert(id).second) ids.push_back(id);
    }
    others += static_cast<std::size_t>(
        std::ranges::count_if(exported_numbers(file->result),
                              [](const ExportedNumber& number) { return !number.better; }));
  }
  std::vector<std::string> head = {"time", "result"};
  head.insert(head.end(), ids.begin(), ids.end());
  Exported made{.text = csv_line(head),
                .left_out = left_out(others, "counts and spreads are neither better nor worse")};
  for (const ReportFile* file : files) {
    std::map<std::string, double> values;
    for (const auto& [id, value] : series_of(file->result)) values.emplace(id, value);
    made.count += values.size();
    std::vector<std::string> cells = {time_of(*file), file->name};
    for (const std::string& id : ids) {
      const auto found = values.find(id);
      cells.push_back(found == values.end() ? "" : Json(found->second).dump());
    }
    made.text += csv_line(cells);
  }
  return made;
}

namespace {

std::string case_line(const Row& row) {
  const auto number = [&](const char* name, std::string (*shown)(double)) {
    const auto found = row.find(name);
    return found == row.end() ? std::string("-") : shown(found->get<double>());
  };
  const auto us = [](double value) { return format_us(value); };
  return "| " + row.at("tokens").dump() + " | " +
         escape_markdown(row.at("series").get<std::string>()) + " | " +
         escape_markdown(row.at("status").get<std::string>()) + " | " + number("median", us) +
         " | " + number("low", us) + " to " + number("high", us) + " | " +
         number("fraction", format_percent) + " | " + number("implementation", format_error) +
         " | " + number("quantization", format_error) + " | " + number("total", format_error) +
         " |\n";
}

// Serving, then scores; of one file, whose name is given where there are several.
std::string markdown_numbers(const ReportFile& file, bool named, std::size_t& count) {
  std::map<std::string, std::string> tables;  // by op
  for (const ExportedNumber& number : exported_numbers(file.result)) {
    if (number.row->op == "eval" && number.unit != "score") continue;  // beside the score
    ++count;
    std::string& text = tables[number.row->op];
    text += "| " + markdown_code(number.id, MarkdownPlace::table_cell) + " | ";
    if (number.unit == "score") {
      const auto questions = number.row->number("samples");
      text += format_plain(number.value) + " | " +
              (number.standard_error ? format_plain(*number.standard_error) : "-") + " | " +
              (questions ? format_plain(*questions) : "-") + " |\n";
    } else {
      text += escape_markdown(number.name) + " | " + format_plain(number.value) + " | " +
              number.unit + " |\n";
    }
  }
  std::string text;
  const std::string of = named ? " · " + escape_markdown(file.name) : "";
  if (tables.contains("serve")) {
    text += "\n#### Serving" + of + "\n\n| point | number | value | unit |\n|---|---|---:|---|\n" +
            tables["serve"];
  }
  if (tables.contains("eval")) {
    text += "\n#### Accuracy" + of +
            "\n\n| score | value | standard error | questions |\n|---|---:|---:|---:|\n" +
            tables["eval"];
  }
  return text;
}

}  // namespace

Exported markdown_tables(const ReportInput& input, const ExportOptions&) {
  const std::vector<Row> rows = rows_of(input, {}).cases;
  std::map<std::string, std::string> tables;
  std::vector<std::string> order;
  for (const Row& row : rows) {
    const std::string panel = row.at("panel");
    if (!tables.contains(panel)) order.push_back(panel);
    tables[panel] += case_line(row);
  }
  Exported made{.count = rows.size()};
  for (const std::string& panel : order) {
    made.text += "\n#### " + escape_markdown(panel) +
                 "\n\n| tokens | backend and config | status | median | interval | of the floor's "
                 "speed | implementation | quantization | total |\n"
                 "|---:|---|---|---:|---|---:|---:|---:|---:|\n" +
                 tables[panel];
  }
  for (const ReportFile& file : input.files)
    made.text += markdown_numbers(file, input.files.size() > 1, made.count);
  if (!made.text.empty()) made.text.erase(0, 1);
  return made;
}

}  // namespace moegauge
