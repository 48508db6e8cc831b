#include "harness/commands/gate.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>

#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/results.h"
#include "harness/commands/shipped_limits.h"
#include "harness/judge/judge.h"
#include "harness/judge/report.h"
#include "harness/result/safe_file.h"
#include "harness/root.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct GateOptions {
  std::string result, baseline;
  std::string policy = "default";
  std::string filter = "*";
  std::string explain;
  std::string markdown, junit;
  bool github = false;
  bool json = false;
};

void declare_options(CLI::App& app, GateOptions& o) {
  app.add_option("RESULT", o.result, "Result file to judge")->required();
  app.add_option("--baseline", o.baseline, "Result file to judge it against")->required();
  add_policy(app, o.policy, "Name of a shipped policy, or a policy file");
  add_filter(app, o.filter, "Only cases whose id matches this glob, on both sides");
  app.add_option("--explain", o.explain,
                 "Print every number behind the cases that match this glob");
  add_markdown(app, o.markdown, "a report for a pull request");
  app.add_option("--junit", o.junit, "Also write JUnit XML to this file");
  app.add_flag("--github", o.github,
               "Print GitHub annotations, and add the report to the job's step summary");
  add_json_flag(app, o.json);
  app.footer(
      "A case fails when its latency is surely more than the policy's limit above the baseline, "
      "when "
      "an error\nexceeds its limit or grew, or when it was ok and no longer is. Exit codes: 0 "
      "pass; 1 "
      "a case failed;\n2 bad input; 4 no verdict: no baseline file, nothing matched, a case "
      "without "
      "counterpart or of another\ndevice, a file that was cut, nothing but inconclusive cases, or "
      "one under a strict policy.\n\n"
      "  moegauge run suites/quick.json --out base.json\n"
      "  (change a kernel, build)\n"
      "  moegauge run suites/quick.json --out now.json\n"
      "  moegauge gate now.json --baseline base.json --markdown gate.md");
}

void print_github(const Judgement& judgement, const ReportTitle& title,
                  const Environment& environment) {
  environment.out << github_annotations(judgement);
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (summary == nullptr) return;
  std::ofstream file(summary, std::ios::app);  // other steps write to it too
  file << markdown_report(judgement, title);
  if (!file.flush())
    environment.err << "moegauge: cannot write the step summary " << summary << '\n';
}

bool print_explanations(const Judgement& judgement, const std::string& glob, std::ostream& out) {
  bool any = false;
  for (const CaseVerdict& verdict : judgement.cases) {
    if (!matches_glob(glob, verdict.id)) continue;
    out << (any ? "\n" : "") << text_explanation(verdict);
    any = true;
  }
  return any;
}

// Before anything is read, so that a wrong command line costs nothing.
void require_own_places(const GateOptions& o, const fs::path& policy) {
  const std::array taken = {NamedFile{"the result", o.result},
                            NamedFile{"the baseline", o.baseline}, NamedFile{"the policy", policy},
                            NamedFile{"--junit", o.junit}};
  if (!o.markdown.empty()) require_own_place("--markdown", o.markdown, taken);
  if (!o.junit.empty()) require_own_place("--junit", o.junit, std::span(taken).first(3));
}

int gate(const GateOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  const fs::path policy_file = find_policy(o.policy, root);
  require_own_places(o, policy_file);
  const Policy policy = load_policy(policy_file);
  const LoadedResult result = load_for_judging(o.result, environment);
  if (std::error_code ignored; !fs::exists(o.baseline, ignored)) {
    environment.err << "moegauge: " << o.baseline
                    << ": no such baseline, so no verdict; record one with moegauge run --out\n";
    return exit_no_verdict;
  }
  const LoadedResult baseline = load_for_judging(o.baseline, environment);
  Judgement judgement =
      judge(result.result, baseline.result, policy, shipped_limits(root), o.filter);
  judgement.cut = result.truncated.value_or(baseline.truncated.value_or(""));

  const ReportTitle title{.result = o.result, .baseline = o.baseline};
  if (!o.markdown.empty()) replace_file(o.markdown, markdown_report(judgement, title));
  if (!o.junit.empty()) replace_file(o.junit, junit_report(judgement, title));
  if (o.json) {
    environment.out << strict_json(json_report(judgement, title)) << '\n';
  } else if (o.explain.empty()) {
    environment.out << text_report(judgement, title);
  }
  if (o.github) print_github(judgement, title, environment);
  const int code = exit_code(judgement);
  if (!o.explain.empty() && !print_explanations(judgement, o.explain, environment.out)) {
    environment.err << "moegauge: --explain: no judged case matches " << o.explain << '\n';
    return code == exit_ok ? exit_no_verdict : code;
  }
  return code;
}

}  // namespace

Action add_gate(CLI::App& subcommand) {
  auto options = std::make_shared<GateOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return gate(*options, environment); };
}

}  // namespace moegauge
