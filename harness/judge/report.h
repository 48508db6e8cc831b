// Verdicts and comparisons as text for people and machines. Names come from files that anyone may
// have written, so every format escapes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/judge/comparison.h"
#include "harness/judge/judge.h"

namespace moegauge {

// What was compared, as the person named it.
struct ReportTitle {
  std::string result, baseline;
};

// A table of every case, then a paragraph for each that needs a person, worst first, then the
// conclusion.
std::string text_report(const Judgement& judgement, const ReportTitle& title);
// The same of two builds, measured in turn: `title.result` is B, `title.baseline` A, and each case
// is faster, same, slower or inconclusive.
std::string text_report_of_builds(const Judgement& judgement, const ReportTitle& title);
// Every number behind one verdict.
std::string text_explanation(const CaseVerdict& verdict);
// For a pull request: the conclusion, what needs a person worst first, the rest folded away.
std::string markdown_report(const Judgement& judgement, const ReportTitle& title);
// JUnit XML as Jenkins and GitLab read it: one testcase per case.
std::string junit_report(const Judgement& judgement, const ReportTitle& title);
// GitHub Actions workflow commands: one annotation per case that needs a person.
std::string github_annotations(const Judgement& judgement);
nlohmann::ordered_json json_report(const Judgement& judgement, const ReportTitle& title);

// `title.result` is B, `title.baseline` A.
std::string text_report(const SideBySide& table, const ReportTitle& title);
std::string markdown_report(const SideBySide& table, const ReportTitle& title);
nlohmann::ordered_json json_report(const SideBySide& table, const ReportTitle& title);

}  // namespace moegauge
