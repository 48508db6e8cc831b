#include "harness/result/result_io.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>

#include "harness/json/cursor.h"
#include "harness/json/document.h"
#include "harness/json/nearest.h"
#include "harness/result/benchmark_rows.h"
#include "harness/result/case_json.h"
#include "harness/result/contradictions.h"
#include "harness/result/json_fields.h"
#include "harness/result/safe_file.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

constexpr std::string_view schema_prefix = "moegauge.result/";
constexpr std::int64_t major_version = 1;

const std::array<std::string_view, 6> top_keys = {"schema", "context",    "comparisons",
                                                  "cases",  "end_to_end", "benchmarks"};

// "moegauge.result/1" or "moegauge.result/1.2"; returns the minor version.
std::int64_t read_schema(const JsonCursor& cursor) {
  const std::string text = cursor.string();
  std::int64_t major = -1, minor = 0;
  const char* at = text.data() + std::min(text.size(), schema_prefix.size());
  const char* const end = text.data() + text.size();
  bool well_formed = text.starts_with(schema_prefix);
  if (well_formed) {
    const auto [after, error] = std::from_chars(at, end, major);
    well_formed = error == std::errc() && major >= 0;
    at = after;
  }
  if (well_formed && at != end) {
    const bool dot = *at == '.';
    const auto [after, error] = std::from_chars(at + (dot ? 1 : 0), end, minor);
    well_formed = dot && error == std::errc() && minor >= 0 && after == end;
  }
  if (!well_formed)
    cursor.fail(in_quotes(text) + " is no result format", "moegauge.result/1 is expected");
  if (major != major_version) {
    cursor.fail("the file is of version " + std::to_string(major),
                "this build reads moegauge.result/1");
  }
  return minor;
}

void read_context(const JsonCursor& cursor, Result& result) {
  for (const auto& [key, value] : cursor.members()) {
    if (is_machine_context_key(key)) {
      result.machine[key] = value.json();
    } else {
      result.context.emplace_back(key, value.string());
    }
  }
}

Comparison read_comparison(const JsonCursor& cursor) {
  const auto number = [&](const char* key) { return cursor.at(key).number(0, HUGE_VAL); };
  Comparison comparison = {.point = cursor.at("point").string(),
                           .a = cursor.at("a").string(),
                           .b = cursor.at("b").string(),
                           .ratio = number("ratio"),
                           .ci_low = number("ci_low"),
                           .ci_high = number("ci_high"),
                           .pairs = cursor.at("pairs").integer(0, INT64_MAX)};
  refuse_contradictions(cursor, comparison);
  return comparison;
}

void read_cases(const JsonCursor& cursor, const std::string& where, Result& result) {
  std::set<std::string> ids;
  for (const auto& item : cursor.items()) {
    CaseRecord record = case_from_json(item.json(), where + ": " + item.pointer());
    if (!ids.insert(record.id()).second) {
      item.fail("the case " + record.id() + " appears twice", "a result holds each case once");
    }
    result.cases.push_back(std::move(record));
  }
}

void read_end_to_end(const JsonCursor& cursor, Result& result) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& item : cursor.items()) {
    EndToEndRow row = end_to_end_from_json(item);
    if (!seen.emplace(row.point(), row.variant()).second) {
      item.fail("the point " + row.point() + " appears twice",
                "a result holds each point once, or once per variant");
    }
    result.end_to_end.push_back(std::move(row));
  }
}

// The rows that other tools read must be of the cases that we read: as many as there are samples,
// or as many as are written of them (older files hold a row for each).
void check_rows(const JsonCursor& cursor, const Result& result) {
  std::map<std::string, std::size_t> samples, rows;
  for (const CaseRecord& record : result.cases) {
    if (const auto* measured = record.measured())
      samples[record.id()] = measured->latency.samples.size();
  }
  const std::string right =
      "one row a sample is expected, or " + std::to_string(max_benchmark_rows) + " where more are";
  for (const auto& item : cursor.items()) {
    if (item.at("run_type").string() != "iteration") continue;
    const auto name = item.at("name");
    const std::string id = name.string();
    const auto known = samples.find(id);
    if (known == samples.end()) {
      name.fail("a row of " + in_quotes(id) + ", which is no ok case of this file",
                "rows are those of the cases that are ok");
    }
    if (++rows[id] > known->second) {
      name.fail("more rows of " + in_quotes(id) + " than its " + std::to_string(known->second) +
                    " samples",
                right);
    }
  }
  for (const auto& [id, count] : samples) {
    if (rows[id] == count || rows[id] == std::min(count, max_benchmark_rows)) continue;
    cursor.fail(std::to_string(rows[id]) + " rows of " + in_quotes(id) + ", which has " +
                    std::to_string(count) + " samples",
                right);
  }
}

// Lines of an array, one element each.
void append_lines(std::string& text, const char* key, const std::vector<std::string>& lines) {
  text += "\"" + std::string(key) + "\": [";
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "\n" : ",\n") + lines[i];
  text += lines.empty() ? "]" : "\n]";
}

Json context_to_json(const Result& result) {
  Json context = result.machine.is_object() ? result.machine : machine_context();
  for (const auto& [key, value] : result.context) {
    if (is_machine_context_key(key)) {
      throw std::invalid_argument("the context key " + key + " is Google Benchmark's");
    }
    context[key] = value;
  }
  return context;
}

std::string result_to_text(const Result& result) {
  std::vector<std::string> comparisons, cases, end_to_end, rows;
  for (const auto& comparison : result.comparisons)
    comparisons.push_back(to_line(comparison_to_json(comparison)));
  std::int64_t family = 0;
  for (const auto& record : result.cases) {
    cases.push_back(case_to_line(record));
    for (const auto& row : benchmark_rows(record, family)) rows.push_back(to_line(row));
    if (record.measured() != nullptr) ++family;
  }
  for (const auto& row : result.end_to_end) end_to_end.push_back(to_line(to_json(row)));
  std::string schema = std::string(schema_prefix) + std::to_string(major_version);
  if (result.minor_version > 0) schema += "." + std::to_string(result.minor_version);
  std::string text = "{\n\"schema\": " + to_line(schema) +
                     ",\n\"context\": " + to_line(context_to_json(result)) + ",\n";
  append_lines(text, "comparisons", comparisons);
  text += ",\n";
  append_lines(text, "cases", cases);
  text += ",\n";
  if (!end_to_end.empty()) {  // files of layers are as they always were
    append_lines(text, "end_to_end", end_to_end);
    text += ",\n";
  }
  append_lines(text, "benchmarks", rows);
  if (result.unknown.is_object()) {
    for (const auto& [key, value] : result.unknown.items())
      text += ",\n" + to_line(key) + ": " + to_line(value);
  }
  return text + "\n}\n";
}

}  // namespace

LoadedResult load_result(const std::filesystem::path& file) {
  return read_result(read_text_file(file), file.string());
}

LoadedResult read_result(const std::string& text, const std::string& where) {
  const CutJson parsed = parse_cut_json(text, where);
  const JsonCursor top(*parsed.root, where);
  if (!parsed.root->is_object() || !parsed.root->contains("schema")) {
    throw InputError(where,
                     text.empty() ? "the file is empty" : "no result: it holds no \"schema\"",
                     "a moegauge.result/1 file is expected");
  }
  LoadedResult loaded;
  Result& result = loaded.result;
  result.minor_version = read_schema(top.at("schema"));
  // A file that was cut has the parts that came before the cut.
  const auto part = [&](std::string_view key) {
    return parsed.stopped ? top.find(key) : top.at(key);
  };
  if (const auto context = part("context")) read_context(*context, result);
  if (const auto comparisons = part("comparisons")) {
    for (const auto& item : comparisons->items())
      result.comparisons.push_back(read_comparison(item));
  }
  if (const auto cases = part("cases")) read_cases(*cases, where, result);
  if (const auto rows = top.find("end_to_end")) read_end_to_end(*rows, result);
  if (!parsed.stopped) check_rows(top.at("benchmarks"), result);
  for (const auto& [key, value] : parsed.root->items()) {
    if (std::find(top_keys.begin(), top_keys.end(), key) == top_keys.end())
      result.unknown[key] = value;
  }
  if (parsed.stopped) {
    loaded.truncated = where + ": cut at " + *parsed.stopped +
                       "; whole cases read: " + std::to_string(result.cases.size());
    if (!result.end_to_end.empty())
      *loaded.truncated +=
          ", serving and accuracy rows: " + std::to_string(result.end_to_end.size());
  }
  return loaded;
}

void write_result(const std::filesystem::path& file, const Result& result) {
  replace_file(file, result_to_text(result));
}

}  // namespace moegauge
