// Reports that other programs read: JUnit XML, GitHub workflow commands, JSON.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/judge/escape.h"
#include "harness/judge/report.h"
#include "harness/judge/report_parts.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

// JUnit knows no more: a case without a verdict is an error of the gate, not a failed case; an
// inconclusive one is an error only where the policy is strict.
const char* junit_element(Verdict verdict, bool strict) {
  switch (verdict) {
    case Verdict::fail:
      return "failure";
    case Verdict::no_verdict:
      return "error";
    case Verdict::inconclusive:
      return strict ? "error" : "skipped";
    case Verdict::not_judged:
    case Verdict::known_issue:
      return "skipped";
    case Verdict::pass:
    case Verdict::improved:
      return nullptr;
  }
  return "error";
}

std::string all_sentences(const CaseVerdict& verdict) {
  std::string text;
  for (const Finding& finding : verdict.findings) text += finding.sentence() + "\n";
  for (const std::string& change : verdict.changes) text += "changed: " + change + "\n";
  if (!verdict.repro.empty()) text += "repeat with: " + verdict.repro + "\n";
  return text;
}

std::string junit_testcase(const CaseVerdict& verdict, bool strict) {
  std::string text =
      "    <testcase classname=\"moegauge.gate\" name=\"" + escape_xml(verdict.id) + "\"";
  const char* element = junit_element(verdict.verdict, strict);
  if (element == nullptr) return text + "/>\n";
  text +=
      ">\n      <" + std::string(element) + " message=\"" + escape_xml(verdict.sentence()) + "\"";
  // The common schema gives `skipped` a message only.
  if (element != std::string_view("skipped")) {
    text += " type=\"" + escape_xml(to_string(verdict.verdict)) + "\">" +
            escape_xml(all_sentences(verdict)) + "</" + element + ">\n";
  } else {
    text += "/>\n";
  }
  return text + "    </testcase>\n";
}

Json json_of(std::optional<double> number) { return number ? Json(*number) : Json(); }

Json json_of(const LatencyJudgement& j) {
  return {{"result_us", j.result_us},
          {"baseline_us", j.baseline_us},
          {"ratio", j.ratio},
          {"ci_low", j.low},
          {"ci_high", j.high},
          {"limit", j.limit},
          {"smallest_failing_ratio", j.smallest_failing_ratio},
          {"within_runs", j.within_runs},
          {"between_runs", j.between_runs},
          {"outcome", to_string(j.change)},
          {"result_processes", j.result_processes},
          {"baseline_processes", j.baseline_processes},
          {"between_processes", j.between_processes},
          {"spread_from", j.spread_from},
          {"limited_by", j.limited_by},
          {"adjusted_p", json_of(j.adjusted_p)},
          {"pairs_needed", j.pairs_needed}};
}

Json json_of(const NumberJudgement& j) {
  return {{"name", j.name},
          {"unit", j.unit},
          {"result", j.result},
          {"baseline", j.baseline},
          {"relative", j.relative},
          {"change", j.change},
          {"limit", j.limit},
          {"low", json_of(j.low)},
          {"high", json_of(j.high)},
          {"result_standard_error", json_of(j.result_error)},
          {"baseline_standard_error", json_of(j.baseline_error)},
          {"result_questions", json_of(j.result_questions)},
          {"baseline_questions", json_of(j.baseline_questions)},
          {"smallest_seen", json_of(j.smallest_seen)},
          {"mcnemar_p", json_of(j.mcnemar_p)},
          {"suspect", j.suspect}};
}

Json json_of(const CaseVerdict& verdict) {
  Json findings = Json::array();
  for (const Finding& f : verdict.findings) {
    findings.push_back(
        {{"verdict", to_string(f.verdict)}, {"subject", f.subject}, {"sentence", f.sentence()}});
  }
  Json errors = Json::array();
  for (const ErrorNumber& e : verdict.errors) {
    errors.push_back({{"name", e.name},
                      {"value", e.value},
                      {"limit", json_of(e.limit)},
                      {"baseline", json_of(e.baseline)}});
  }
  return {{"id", verdict.id},
          {"verdict", to_string(verdict.verdict)},
          {"findings", std::move(findings)},
          {"latency", verdict.latency ? json_of(*verdict.latency) : Json()},
          {"number", verdict.number ? json_of(*verdict.number) : Json()},
          {"errors", std::move(errors)},
          {"changes", verdict.changes},
          {"repro", verdict.repro}};
}

Json json_of(const std::vector<ComparedRivals>& rivals) {
  Json list = Json::array();
  for (const ComparedRivals& r : rivals) {
    const Comparison& c = r.measured;
    list.push_back({{"point", c.point},
                    {"a", c.a},
                    {"b", c.b},
                    {"ratio", c.ratio},
                    {"ci_low", c.ci_low},
                    {"ci_high", c.ci_high},
                    {"a_is", to_string(r.change)}});
  }
  return list;
}

}  // namespace

std::string junit_report(const Judgement& judgement, const ReportTitle& title) {
  std::size_t failures = 0, errors = 0, skipped = 0;
  std::string testcases;
  if (judgement.cases.empty()) {
    // Readers take an empty suite for a green one.
    testcases = junit_testcase({.id = "conclusion",
                                .verdict = Verdict::no_verdict,
                                .findings = {{Verdict::no_verdict, "", conclusion(judgement)}}},
                               judgement.strict);
    ++errors;
  }
  for (const CaseVerdict& verdict : judgement.cases) {
    const char* element = junit_element(verdict.verdict, judgement.strict);
    const std::string_view kind = element == nullptr ? "" : element;
    failures += kind == "failure";
    errors += kind == "error";
    skipped += kind == "skipped";
    testcases += junit_testcase(verdict, judgement.strict);
  }
  const auto count = [](const char* name, std::size_t n) {
    return std::string(" ") + name + "=\"" + std::to_string(n) + "\"";
  };
  const std::string counts = count("tests", std::max<std::size_t>(judgement.cases.size(), 1)) +
                             count("failures", failures) + count("errors", errors);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + counts +
         ">\n  <testsuite name=\"" +
         escape_xml("moegauge gate: " + title.result + " against " + title.baseline) + "\"" +
         counts + count("skipped", skipped) + ">\n" + testcases + "  </testsuite>\n</testsuites>\n";
}

std::string github_annotations(const Judgement& judgement) {
  // GitHub shows no more of one level in a step, and does not say that there were.
  constexpr std::size_t most = 10;
  std::map<std::string, std::vector<std::string>> by_level;
  for (const CaseVerdict* verdict : worst_first(judgement)) {
    if (!needs_person(*verdict)) continue;
    const char* level = verdict->verdict == Verdict::fail                               ? "error"
                        : verdict->verdict == Verdict::no_verdict                       ? "warning"
                        : verdict->verdict == Verdict::inconclusive && judgement.strict ? "warning"
                                                                                        : "notice";
    by_level[level].push_back(
        std::string("::") + level + " title=" +
        escape_github_property(std::string(to_string(verdict->verdict)) + ": " + verdict->id) +
        "::" + escape_github_data(all_sentences(*verdict)) + "\n");
  }
  std::string text;
  for (const char* level : {"error", "warning", "notice"}) {
    const std::vector<std::string>& lines = by_level[level];
    const std::size_t shown = lines.size() > most ? most - 1 : lines.size();
    for (std::size_t i = 0; i < shown; ++i) text += lines[i];
    if (shown == lines.size()) continue;
    text += std::string("::") + level + " title=moegauge::" + std::to_string(lines.size() - shown) +
            " more; the step summary and the log have them\n";
  }
  return text;
}

Json json_report(const Judgement& judgement, const ReportTitle& title) {
  Json cases = Json::array();
  for (const CaseVerdict& verdict : judgement.cases) cases.push_back(json_of(verdict));
  return {{"schema", "moegauge.verdict/1"},
          {"result", title.result},
          {"baseline", title.baseline},
          {"policy", judgement.policy},
          {"exit_code", exit_code(judgement)},
          {"conclusion", conclusion(judgement)},
          {"notes", judgement.notes},
          {"geometric_mean_ratio", json_of(judgement.geometric_mean_ratio)},
          {"means", judgement.means},
          {"cases", std::move(cases)}};
}

Json json_report(const SideBySide& table, const ReportTitle& title) {
  Json cases = Json::array();
  for (const ComparedCase& c : table.cases) {
    Json ratio;
    if (c.ratio)
      ratio = {{"ratio", c.ratio->ratio}, {"ci_low", c.ratio->low}, {"ci_high", c.ratio->high}};
    cases.push_back({{"id", c.id},
                     {"point", c.point},
                     {"b_is", to_string(c.change)},
                     {"a_us", json_of(c.a_us)},
                     {"b_us", json_of(c.b_us)},
                     {"b_over_a", std::move(ratio)},
                     {"note", c.note}});
  }
  Json numbers = Json::array();
  for (const CaseVerdict& verdict : table.numbers) {
    numbers.push_back({{"id", verdict.id},
                       {"b_is", number_outcome(verdict)},
                       {"number", verdict.number ? json_of(*verdict.number) : Json()},
                       {"sentence", verdict.sentence()}});
  }
  return {{"schema", "moegauge.comparison/1"},
          {"a", title.baseline},
          {"b", title.result},
          {"geometric_mean_ratio", json_of(table.geometric_mean_ratio)},
          {"cases", std::move(cases)},
          {"rivals_a", json_of(table.rivals_a)},
          {"rivals_b", json_of(table.rivals_b)},
          {"serving_and_accuracy", std::move(numbers)}};
}

}  // namespace moegauge
