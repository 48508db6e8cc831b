#include "harness/endtoend/ingest.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "harness/endtoend/pasted_text.h"
#include "harness/endtoend/readers.h"
#include "harness/endtoend/sha256.h"
#include "harness/json/nearest.h"
#include "harness/judge/numbers.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

bool whole_object(const std::string& line) { return line.starts_with('{') && line.ends_with('}'); }

// A log of one question is a JSON file too, but for its doc_id.
bool is_json_lines(const std::string& text) {
  std::string first;
  for (const PastedLine& line : pasted_lines(text)) {
    const std::string content = trimmed(line.text);
    if (content.empty()) continue;
    if (!first.empty()) return whole_object(first);
    first = content;
    if (!whole_object(first)) return false;
  }
  return first.find("\"doc_id\"") != std::string::npos;
}

bool same_score(const EndToEndRow& a, const EndToEndRow& b) {
  for (const char* name : {"task", "metric", "filter"})
    if (a.labels.at(name) != b.labels.at(name)) return false;
  return true;
}

bool is_score(const EndToEndRow& row) {
  return row.op == "eval" && row.labels.contains("task") && row.labels.contains("metric") &&
         row.labels.contains("filter");
}

// The score in `rows` that a log is of, where there is exactly one.
EndToEndRow* score_of(const EndToEndRow& log, std::vector<EndToEndRow>& rows) {
  EndToEndRow* found = nullptr;
  for (EndToEndRow& row : rows) {
    if (!is_score(row) || !same_score(row, log)) continue;
    if (found != nullptr) return nullptr;
    found = &row;
  }
  return found;
}

std::vector<EndToEndRow> join_logs(std::vector<EndToEndRow> all) {
  std::vector<EndToEndRow> rows, logs;
  for (EndToEndRow& row : all)
    (row.source.tool == samples_tool ? logs : rows).push_back(std::move(row));
  std::vector<EndToEndRow> alone;
  for (EndToEndRow& log : logs) {
    EndToEndRow* score = score_of(log, rows);
    if (score == nullptr) {
      alone.push_back(std::move(log));
      continue;
    }
    // Tables are rounded to four digits. What is neither right nor wrong need not be a mean.
    if (log.questions && std::abs(*score->number("value") - *log.number("value")) > 0.5e-4) {
      throw InputError(log.source.text(),
                       "its mean is " + std::to_string(*log.number("value")) + ", the score of " +
                           score->source.text() + " " + std::to_string(*score->number("value")),
                       "give the log of the same run");
    }
    score->questions = std::move(log.questions);
    score->numbers.emplace("samples", *log.number("samples"));
    score->unknown["questions_from"] = {{"file", log.source.file}, {"sha256", log.source.sha256}};
  }
  std::ranges::move(alone, std::back_inserter(rows));
  return rows;
}

void tell_apart(std::vector<EndToEndRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<EndToEndRow*>> alike;
  for (EndToEndRow& row : rows) alike[{row.point(), row.variant()}].push_back(&row);
  for (auto& [key, group] : alike) {
    if (group.size() < 2) continue;
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::string& variant = group[i]->labels["variant"];
      variant += (variant.empty() ? "" : " ") + std::to_string(i + 1);
    }
  }
}

void choose_variant(std::vector<EndToEndRow>& rows, const std::string& variant) {
  std::set<std::string> names;
  for (const EndToEndRow& row : rows) names.insert(row.variant());
  names.erase("");
  const std::vector<std::string> known(names.begin(), names.end());
  std::erase_if(rows, [&](const EndToEndRow& row) { return row.variant() != variant; });
  if (!rows.empty()) return;
  throw InputError("--variant", "no row is of " + in_quotes(variant),
                   known.empty() ? "the files hold no variants" : suggestion(variant, known));
}

void put_per_gpu(EndToEndRow& row, std::int64_t gpus) {
  if (row.op != "serve") return;
  row.numbers["gpus"] = static_cast<double>(gpus);
  for (const char* name : {"requests_per_s", "output_tokens_per_s", "total_tokens_per_s"}) {
    if (const auto value = row.number(name))
      row.numbers.emplace(std::string(name) + "_per_gpu", *value / static_cast<double>(gpus));
  }
}

// The score is the share of right answers, and its error that of a share, as the harness has it.
void put_standard_error(EndToEndRow& row, std::int64_t questions) {
  // No error at all is what tools write of one answer, or of all alike, and says nothing.
  if (row.op != "eval" || row.number("stderr").value_or(0) > 0) return;
  const double share = *row.number("value"), n = static_cast<double>(questions);
  if (!(share >= 0 && share <= 1)) {
    throw InputError("--questions",
                     "the score of " + row.source.text() + " is no share: " + std::to_string(share),
                     "scores from 0 to 1");
  }
  row.numbers["samples"] = n;
  row.numbers["stderr"] = std::sqrt(share * (1 - share) / (n - 1));
  row.unknown["stderr_from"] =
      "sqrt(p (1 - p) / (n - 1)), n = " + std::to_string(questions) + " as given by --questions";
}

// What is written must be read again: a row has a number, and only a score may be below 0.
void require_numbers(const EndToEndRow& row) {
  if (row.numbers.empty())
    throw InputError(row.source.text(), "a result without a number",
                     "one of a run that ended well");
  for (const auto& [name, value] : row.numbers) {
    if (value >= 0 || (row.op == "eval" && name == "value")) continue;
    throw InputError(row.source.text(), name + " is " + format_plain(value), "a number from 0");
  }
}

}  // namespace

std::vector<EndToEndRow> read_rows(const NamedText& given) {
  NamedText file = given;
  // What Windows puts before text.
  if (file.text.starts_with("\xEF\xBB\xBF")) file.text.erase(0, 3);
  if (file.text.starts_with("\xFF\xFE") || file.text.starts_with("\xFE\xFF"))
    throw InputError(file.name + ":1", "the text is UTF-16", "save it as UTF-8");
  const auto begin = file.text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos)
    throw InputError(file.name + ":1", "the file is empty", "results of a tool, or pasted text");
  const bool json = file.text[begin] == '{' || file.text[begin] == '[';
  std::vector<EndToEndRow> rows = is_json_lines(file.text) ? read_json_lines(file.text, file.name)
                                  : json                   ? read_tool_json(file.text, file.name)
                                                           : read_pasted(file.text, file.name);
  const std::string digest = sha256(given.text);
  for (EndToEndRow& row : rows) {
    row.source.sha256 = digest;
    require_numbers(row);
  }
  return rows;
}

std::vector<EndToEndRow> ingest(std::span<const NamedText> files, const IngestOptions& options) {
  std::vector<EndToEndRow> rows;
  for (const NamedText& file : files) std::ranges::move(read_rows(file), std::back_inserter(rows));
  rows = join_logs(std::move(rows));
  for (EndToEndRow& row : rows) {
    if (!options.model.empty()) row.model = options.model;
    for (const auto& [name, value] : options.labels) row.labels[name] = value;
    if (options.gpus) put_per_gpu(row, *options.gpus);
    if (options.questions) put_standard_error(row, *options.questions);
  }
  tell_apart(rows);
  if (!options.variant.empty()) choose_variant(rows, options.variant);
  return rows;
}

}  // namespace moegauge
