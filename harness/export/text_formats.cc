#include <algorithm>
#include <array>
#include <map>

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

}  // namespace

std::string csv_long(const ReportInput& input, const ExportOptions&) {
  std::vector<std::string> head(coordinates.begin(), coordinates.end());
  head.insert(head.end(), {"number", "value"});
  std::string text = csv_line(head);
  for (const Row& row : rows_of(input, {}).cases) {
    for (const Number& number : numbers) {
      const auto found = row.find(number.name);
      if (found == row.end()) continue;
      std::vector<std::string> cells = coordinate_cells(row);
      cells.insert(cells.end(), {number.title, value_text(*found)});
      text += csv_line(cells);
    }
  }
  return text;
}

std::string csv_wide(const ReportInput& input, const ExportOptions&) {
  std::vector<std::string> head(coordinates.begin(), coordinates.end());
  for (const Number& number : numbers) head.push_back(number.title);
  head.push_back("reason");
  std::string text = csv_line(head);
  for (const Row& row : rows_of(input, {}).cases) {
    std::vector<std::string> cells = coordinate_cells(row);
    for (const Number& number : numbers) {
      const auto found = row.find(number.name);
      cells.push_back(found == row.end() ? "" : value_text(*found));
    }
    cells.push_back(row.value("reason", ""));
    text += csv_line(cells);
  }
  return text;
}

std::string csv_otava(const ReportInput& input, const ExportOptions&) {
  std::vector<const ReportFile*> files;
  for (const ReportFile& file : input.files) files.push_back(&file);
  std::ranges::stable_sort(files, {}, [](const ReportFile* file) { return time_of(*file); });
  std::vector<std::string> ids;
  for (const ReportFile* file : files) {
    for (const CaseRecord& record : file->result.cases) {
      if (record.measured() && std::ranges::find(ids, record.id()) == ids.end())
        ids.push_back(record.id());
    }
  }
  std::vector<std::string> head = {"time", "result"};
  head.insert(head.end(), ids.begin(), ids.end());
  std::string text = csv_line(head);
  for (const ReportFile* file : files) {
    std::map<std::string, double> medians;
    for (const CaseRecord& record : file->result.cases) {
      if (record.measured()) medians.emplace(record.id(), record.measured()->latency.median);
    }
    std::vector<std::string> cells = {time_of(*file), file->name};
    for (const std::string& id : ids) {
      const auto found = medians.find(id);
      cells.push_back(found == medians.end() ? "" : Json(found->second).dump());
    }
    text += csv_line(cells);
  }
  return text;
}

std::string markdown_tables(const ReportInput& input, const ExportOptions&) {
  const std::vector<Row> rows = rows_of(input, {}).cases;
  std::map<std::string, std::string> tables;
  std::vector<std::string> order;
  for (const Row& row : rows) {
    const std::string panel = row.at("panel");
    if (!tables.contains(panel)) order.push_back(panel);
    std::string& text = tables[panel];
    const auto number = [&](const char* name, std::string (*shown)(double)) {
      const auto found = row.find(name);
      return found == row.end() ? std::string("-") : shown(found->get<double>());
    };
    const auto us = [](double value) { return format_us(value); };
    text += "| " + row.at("tokens").dump() + " | " +
            escape_markdown(row.at("series").get<std::string>()) + " | " +
            escape_markdown(row.at("status").get<std::string>()) + " | " + number("median", us) +
            " | " + number("low", us) + " to " + number("high", us) + " | " +
            number("fraction", format_percent) + " | " + number("implementation", format_error) +
            " | " + number("quantization", format_error) + " | " + number("total", format_error) +
            " |\n";
  }
  std::string text;
  for (const std::string& panel : order) {
    text += (text.empty() ? "#### " : "\n#### ") + escape_markdown(panel) +
            "\n\n| tokens | backend and config | status | median | interval | of the floor's speed "
            "| implementation | quantization | total |\n"
            "|---:|---|---|---:|---|---:|---:|---:|---:|\n" +
            tables[panel];
  }
  return text;
}

}  // namespace moegauge
