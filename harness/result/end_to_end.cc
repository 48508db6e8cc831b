#include "harness/result/end_to_end.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <stdexcept>

#include "harness/result/json_fields.h"

namespace moegauge {
namespace {

// The labels that people look for stand first, the rest in the order of their letters.
constexpr std::array leading_labels = {"task",         "metric",      "filter",     "n_shot",
                                       "input_output", "parallelism", "concurrency"};
constexpr const char* variant_label = "variant";

Json questions_to_json(const Questions& questions) {
  return {{"right", questions.right}, {"wrong", questions.wrong}, {"sha256", questions.sha256}};
}

Json source_to_json(const EndToEndSource& source) {
  Json json = {{"file", source.file}};
  if (!source.lines.empty()) json["lines"] = source.lines;
  if (!source.pointer.empty()) json["pointer"] = source.pointer;
  json["sha256"] = source.sha256;
  json["tool"] = source.tool;
  return json;
}

std::vector<std::int64_t> integers(const JsonCursor& list, std::int64_t least) {
  std::vector<std::int64_t> all;
  for (const JsonCursor& item : list.items()) {
    all.push_back(item.integer(least, INT64_MAX));
    if (all.size() > 1 && all[all.size() - 2] >= all.back())
      item.fail("out of order", "ascending numbers, each once");
  }
  return all;
}

Questions read_questions(const JsonCursor& json) {
  Questions questions{.right = integers(json.at("right"), 0),
                      .wrong = integers(json.at("wrong"), 0),
                      .sha256 = json.at("sha256").text()};
  std::vector<std::int64_t> both;
  std::ranges::set_intersection(questions.right, questions.wrong, std::back_inserter(both));
  if (!both.empty())
    json.fail("question " + std::to_string(both.front()) + " is both right and wrong",
              "each question once");
  return questions;
}

EndToEndSource read_source(const JsonCursor& json) {
  EndToEndSource source{.file = json.at("file").string(),
                        .sha256 = json.at("sha256").string(),
                        .tool = json.at("tool").string()};
  if (const auto lines = json.find("lines")) source.lines = integers(*lines, 1);
  if (const auto pointer = json.find("pointer")) source.pointer = pointer->string();
  return source;
}

void read_numbers(const JsonCursor& json, EndToEndRow& row) {
  for (const auto& [name, value] : json.members()) {
    const double least = row.op == "eval" && name == "value" ? -HUGE_VAL : 0;
    row.numbers[name] = value.number(least, HUGE_VAL);
  }
  if (row.numbers.empty()) json.fail("no number in it", "a row holds what was measured");
  if (row.op == "eval" && !row.number("value"))
    json.fail("the key \"value\" is missing", "the score of an eval");
}

}  // namespace

std::string EndToEndSource::text() const {
  std::string text = file;
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += (i == 0 ? ":" : ",") + std::to_string(lines[i]);
  return pointer.empty() ? text : text + ": " + pointer;
}

std::string EndToEndRow::point() const {
  std::string text = op + "/" + (model.empty() ? "-" : model);
  std::set<std::string> done = {variant_label};
  const auto put = [&](const std::string& name) {
    const auto found = labels.find(name);
    if (found != labels.end() && done.insert(name).second) text += "/" + name + "=" + found->second;
  };
  for (const char* name : leading_labels) put(name);
  for (const auto& [name, value] : labels) put(name);
  return text;
}

std::optional<double> EndToEndRow::number(const std::string& name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::string EndToEndRow::variant() const {
  const auto found = labels.find(variant_label);
  return found == labels.end() ? "" : found->second;
}

Json to_json(const EndToEndRow& row) {
  Json numbers = Json::object();
  for (const auto& [name, value] : row.numbers) numbers[name] = finite(value, name);
  Json json = {{"op", row.op},
               {"model", row.model},
               {"labels", Json::object()},
               {"numbers", std::move(numbers)}};
  for (const auto& [name, value] : row.labels) json["labels"][name] = value;
  if (row.lower_is_better) json["lower_is_better"] = true;
  if (row.questions) json["questions"] = questions_to_json(*row.questions);
  json["source"] = source_to_json(row.source);
  if (!row.unknown.is_null()) json["unknown"] = row.unknown;
  merge_missing(json, row.newer);
  return json;
}

EndToEndRow end_to_end_from_json(const JsonCursor& top) {
  EndToEndRow row;
  const std::vector<std::string> ops = {"serve", "eval"};
  row.op = ops[top.at("op").one_of(ops, "op")];
  row.model = top.at("model").string();
  for (const auto& [name, value] : top.at("labels").members()) row.labels[name] = value.string();
  read_numbers(top.at("numbers"), row);
  if (const auto lower = top.find("lower_is_better")) row.lower_is_better = lower->boolean();
  if (const auto questions = top.find("questions")) row.questions = read_questions(*questions);
  row.source = read_source(top.at("source"));
  if (const auto unknown = top.find("unknown")) row.unknown = unknown->json();
  row.newer = beyond(top.json(), to_json(row));
  return row;
}

}  // namespace moegauge
