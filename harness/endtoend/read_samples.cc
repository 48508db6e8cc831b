#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <regex>
#include <tuple>

#include "harness/endtoend/json_rows.h"
#include "harness/endtoend/pasted_text.h"
#include "harness/endtoend/readers.h"
#include "harness/endtoend/sha256.h"
#include "harness/json/document.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct Answer {
  double value = 0;
  std::string question = {};  // its hash, where the log has one
};
using Answers = std::map<std::int64_t, Answer>;      // by doc_id
using Series = std::pair<std::string, std::string>;  // metric, filter

// "samples_gsm8k_2026-11-30T10-00-00.123456.jsonl"
std::string task_of(const std::string& file) {
  const std::string name = std::filesystem::path(file).stem().string();
  static const std::regex pattern(R"(samples_(.+)_\d{4}-\d{2}-\d{2}T.*)");
  std::smatch match;
  return std::regex_match(name, match, pattern) ? match[1].str() : name;
}

std::vector<std::string> metrics_of(const JsonCursor& line) {
  std::vector<std::string> metrics;
  if (const auto named = line.find("metrics")) {
    for (const JsonCursor& name : named->items()) metrics.push_back(name.text());
    return metrics;
  }
  for (const auto& [key, value] : line.members())  // versions before 0.4.5 do not name them
    if (value.is_number() && key != "doc_id") metrics.push_back(key);
  return metrics;
}

void add_line(const JsonCursor& line, std::map<Series, Answers>& all) {
  const std::int64_t id = line.at("doc_id").integer(0, INT64_MAX);
  const auto filter = line.find("filter");
  const std::string of = filter && filter->is_string() ? filter->string() : "none";
  const auto hash = line.find("doc_hash");
  for (const std::string& metric : metrics_of(line)) {
    const JsonCursor value = line.at(metric);
    const bool truth = value.json().is_boolean();
    if (!value.is_number() && !truth) continue;  // of a metric that is no mean of its questions
    Answer answer{
        .value = truth ? static_cast<double>(value.boolean()) : value.number(-HUGE_VAL, HUGE_VAL),
        .question = hash && hash->is_string() ? hash->string() : ""};
    if (!all[{metric, of}].emplace(id, std::move(answer)).second) {
      line.at("doc_id").fail("question " + std::to_string(id) + " appears twice",
                             "one line per question and filter");
    }
  }
}

EndToEndRow row_of(const Series& series, const Answers& answers, const std::string& where) {
  EndToEndRow row{
      .op = "eval",
      .labels = {{"task", task_of(where)}, {"metric", series.first}, {"filter", series.second}},
      .source = {.file = where, .tool = samples_tool}};
  const double n = static_cast<double>(answers.size());
  Questions questions;
  std::string all;
  double sum = 0;
  bool binary = true;
  for (const auto& [id, answer] : answers) {
    sum += answer.value;
    binary = binary && (answer.value == 0 || answer.value == 1);
    (answer.value > 0.5 ? questions.right : questions.wrong).push_back(id);
    all += std::to_string(id) + " " + answer.question + "\n";
  }
  double squares = 0;
  for (const auto& [id, answer] : answers) squares += std::pow(answer.value - sum / n, 2);
  row.numbers = {{"value", sum / n}, {"samples", n}};
  if (n > 1) row.numbers["stderr"] = std::sqrt(squares / (n - 1) / n);
  questions.sha256 = sha256(all);
  if (binary) row.questions = std::move(questions);
  return row;
}

}  // namespace

std::vector<EndToEndRow> read_json_lines(const std::string& text, const std::string& where) {
  std::vector<EndToEndRow> rows;
  std::map<Series, Answers> answers;
  for (const PastedLine& line : pasted_lines(text)) {
    if (trimmed(line.text).empty()) continue;
    const JsonDocument document = JsonDocument::parse(with_null_for_no_number(line.text),
                                                      where + ":" + std::to_string(line.number));
    const JsonCursor top(document);
    if (is_serve_result(top)) {
      rows.push_back(serve_row(top));
      rows.back().source.file = where;
      rows.back().source.lines = {line.number};
    } else {
      add_line(top, answers);
    }
  }
  for (const auto& [series, of_series] : answers) rows.push_back(row_of(series, of_series, where));
  if (rows.empty())
    throw InputError(where + ":1", "no question and no run in it", "a --log_samples file");
  return rows;
}

}  // namespace moegauge
