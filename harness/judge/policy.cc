#include "harness/judge/policy.h"

#include <algorithm>
#include <chrono>

#include "harness/json/cursor.h"
#include "harness/json/document.h"
#include "harness/json/nearest.h"
#include "harness/suite/case_fields.h"
#include "harness/suite/select.h"
#include "reference/base/input_error.h"
#include "reference/schemes/scheme.h"

namespace moegauge {
namespace {

constexpr std::string_view policy_schema = "moegauge.policy/1";
constexpr double unbounded = std::numeric_limits<double>::max();
// A second. What is larger would turn the rule off.
constexpr double most_floor_us = 1e6;
// A row with its sign turned is at distance 2 from the truth: a larger limit limits nothing.
constexpr double most_error = 2;

void read_pattern(const JsonCursor& rule, std::string_view key, std::string& pattern) {
  if (const auto value = rule.find(key)) pattern = value->text();
}

// A pattern that is a name must be one: misspelt, its rule would match nothing and leave its cases
// to a later and looser one.
bool is_a_name(const JsonCursor& rule, std::string_view key) {
  const auto value = rule.find(key);
  return value && value->text().find_first_of("*?[\\") == std::string::npos;
}

void require_known(const JsonCursor& rule, std::string_view key,
                   const std::vector<std::string>& names) {
  if (is_a_name(rule, key)) rule.at(key).one_of(names, key);
}

void require_known_names(const JsonCursor& rule, const CaseMatch& match) {
  require_known(rule, "op", op_names());
  if (is_a_name(rule, "scheme") && make_scheme(match.scheme) == nullptr) {
    const UnknownName unknown = unknown_scheme(match.scheme);
    rule.at("scheme").fail(unknown.wrong, unknown.right);
  }
  if (!match.inputs.starts_with("file:")) require_known(rule, "inputs", input_names());
}

CaseMatch read_match(const JsonCursor& rule) {
  CaseMatch match;
  read_pattern(rule, "op", match.op);
  read_pattern(rule, "scheme", match.scheme);
  read_pattern(rule, "backend", match.backend);
  read_pattern(rule, "inputs", match.inputs);
  require_known_names(rule, match);
  if (const auto tokens = rule.find("tokens")) {
    const std::vector<JsonCursor> range = tokens->items();
    if (range.size() != 2) tokens->fail("not a range of batch sizes", "[from, to], both included");
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    match.tokens_from = range[0].integer(0, most);
    match.tokens_to = range[1].integer(match.tokens_from, most);
  }
  return match;
}

LatencyRule read_latency_rule(const JsonCursor& rule) {
  rule.only_keys({"op", "scheme", "backend", "inputs", "tokens", "ratio_limit", "between_runs",
                  "floor_us", "floor_ratio", "outlier_ratio"});
  const auto floor_ratio = rule.find("floor_ratio"), outlier_ratio = rule.find("outlier_ratio");
  return {.match = read_match(rule),
          .ratio_limit = rule.at("ratio_limit").number(1, 100),
          .between_runs = rule.at("between_runs").number(0, 1),
          .floor_us = rule.at("floor_us").number(0, most_floor_us),
          .floor_ratio = floor_ratio ? floor_ratio->number(1, 100) : 1.01,
          .outlier_ratio = outlier_ratio ? outlier_ratio->number(1, 100) : 1};
}

std::optional<double> read_limit(const JsonCursor& rule, std::string_view key) {
  const auto value = rule.find(key);
  return value ? std::optional(value->number(0, most_error)) : std::nullopt;
}

ErrorRule read_error_rule(const JsonCursor& rule) {
  rule.only_keys({"op", "scheme", "backend", "inputs", "tokens", "relative_l2", "worst_token",
                  "growth_limit", "growth_floor"});
  return {.match = read_match(rule),
          .relative_l2 = read_limit(rule, "relative_l2"),
          .worst_token = read_limit(rule, "worst_token"),
          .growth_limit = rule.at("growth_limit").number(1, 100),
          .growth_floor = rule.at("growth_floor").number(0, most_error)};
}

IdMatch read_id_match(const JsonCursor& rule) {
  IdMatch match;
  read_pattern(rule, "case", match.glob);
  return match;
}

ServingRule read_serving_rule(const JsonCursor& rule) {
  rule.only_keys({"case", "band"});
  return {.match = read_id_match(rule), .band = rule.at("band").number(0, 1)};
}

AccuracyRule read_accuracy_rule(const JsonCursor& rule) {
  rule.only_keys({"case", "margin"});
  return {.match = read_id_match(rule), .margin = rule.at("margin").number(0, unbounded)};
}

TotalRule read_total_rule(const JsonCursor& rule) {
  rule.only_keys({"limit", "applies_above"});
  return {.limit = rule.at("limit").number(1, 100),
          .applies_above = rule.at("applies_above").number(0, most_error)};
}

bool is_date(const std::string& text) {
  static constexpr std::string_view shape = "dddd-dd-dd";
  if (text.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != shape[i]) return false;
  }
  const auto number = [&text](std::size_t from, std::size_t count) {
    return static_cast<unsigned>(std::stoul(text.substr(from, count)));
  };
  using namespace std::chrono;
  return (year(static_cast<int>(number(0, 4))) / month(number(5, 2)) / day(number(8, 2))).ok();
}

KnownIssue read_known_issue(const JsonCursor& issue) {
  issue.only_keys({"case", "subject", "reason", "expires"});
  const JsonCursor expires = issue.at("expires");
  if (!is_date(expires.string())) expires.fail("no date", "year, month and day: 2026-12-31");
  const auto subject = issue.find("subject");
  return {.match = issue.at("case").text(),
          .subject = subject ? subject->text() : "*",
          .reason = issue.at("reason").text(),
          .expires = expires.string()};
}

std::vector<KnownIssue> read_known_issues(const JsonCursor& root) {
  std::vector<KnownIssue> issues;
  if (const auto list = root.find("known_issues")) {
    for (const JsonCursor& item : list->items()) issues.push_back(read_known_issue(item));
  }
  return issues;
}

// Without a last rule for everything, a case that no rule names would pass unjudged.
template <typename Rule>
std::vector<Rule> read_rules(const JsonCursor& list, Rule (*read)(const JsonCursor&)) {
  std::vector<Rule> rules;
  const std::vector<JsonCursor> items = list.items();
  for (const JsonCursor& item : items) {
    if (!rules.empty() && rules.back().match.matches_everything()) {
      item.fail("never used, because the rule before it is for every case",
                "put the rule for every case last");
    }
    rules.push_back(read(item));
  }
  if (rules.empty() || !rules.back().match.matches_everything()) {
    list.fail("some cases have no rule",
              "end the list with a rule without op, scheme, backend, inputs, tokens or case");
  }
  return rules;
}

Policy read_policy(const JsonCursor& root) {
  root.only_keys({"schema", "name", "description", "confidence", "false_alarms", "strict",
                  "controls", "known_issues", "total", "latency", "error", "serving", "accuracy"});
  const JsonCursor schema = root.at("schema");
  if (schema.string() != policy_schema) {
    schema.fail("not a policy that this version reads", "\"" + std::string(policy_schema) + "\"");
  }
  const auto description = root.find("description");
  const auto total = root.find("total");
  const auto false_alarms = root.find("false_alarms");
  const auto controls = root.find("controls");
  const auto serving = root.find("serving");
  const auto accuracy = root.find("accuracy");
  return {.name = root.at("name").text(),
          .description = description ? description->string() : "",
          .confidence = root.at("confidence").number(0.5, 0.9999),
          .false_alarms = false_alarms ? false_alarms->number(1e-6, 0.5) : 0.003,
          .strict = root.at("strict").boolean(),
          .controls = controls && controls->boolean(),
          .known_issues = read_known_issues(root),
          .total = total ? std::optional(read_total_rule(*total)) : std::nullopt,
          .latency = read_rules(root.at("latency"), read_latency_rule),
          .error = read_rules(root.at("error"), read_error_rule),
          .serving = serving ? read_rules(*serving, read_serving_rule) : std::vector{ServingRule{}},
          .accuracy =
              accuracy ? read_rules(*accuracy, read_accuracy_rule) : std::vector{AccuracyRule{}}};
}

template <typename Rule, typename Named>
const Rule& first_match(const std::vector<Rule>& rules, const Named& c) {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&c](const Rule& rule) { return rule.match.matches(c); });
  return found == rules.end() ? rules.back() : *found;
}

}  // namespace

bool CaseMatch::matches(const CaseCoordinates& c) const {
  return matches_glob(op, c.op) && matches_glob(scheme, c.scheme) &&
         matches_glob(backend, c.backend) && matches_glob(inputs, c.inputs) &&
         tokens_from <= c.tokens && c.tokens <= tokens_to;
}

bool CaseMatch::matches_everything() const {
  const CaseMatch everything;
  return op == everything.op && scheme == everything.scheme && backend == everything.backend &&
         inputs == everything.inputs && tokens_from == everything.tokens_from &&
         tokens_to == everything.tokens_to;
}

const LatencyRule& Policy::latency_rule(const CaseCoordinates& c) const {
  return first_match(latency, c);
}
const ErrorRule& Policy::error_rule(const CaseCoordinates& c) const {
  return first_match(error, c);
}

bool IdMatch::matches(const std::string& id) const { return matches_glob(glob, id); }
const ServingRule& Policy::serving_rule(const std::string& id) const {
  return first_match(serving, id);
}
const AccuracyRule& Policy::accuracy_rule(const std::string& id) const {
  return first_match(accuracy, id);
}

std::filesystem::path find_policy(const std::string& name, const std::filesystem::path& root) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name, ignored)) return name;
  const std::filesystem::path folder = root / "suites" / "policies";
  const std::filesystem::path shipped = folder / (name + ".json");
  if (std::filesystem::is_regular_file(shipped, ignored)) return shipped;
  std::vector<std::string> known;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    known.push_back(entry.path().stem());
  }
  std::sort(known.begin(), known.end());
  throw InputError("--policy", "no file and no shipped policy is called " + in_quotes(name),
                   suggestion(name, known));
}

Policy load_policy(const std::filesystem::path& file) {
  const JsonDocument document = JsonDocument::read(file);
  return read_policy(JsonCursor(document));
}

Policy policy_from_json(const nlohmann::ordered_json& json, const std::string& where) {
  return read_policy(JsonCursor(json, where));
}

}  // namespace moegauge
