#include "harness/commands/compare.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <string>
#include <utility>

#include "harness/commands/compare_builds.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/results.h"
#include "harness/endtoend/judge_rows.h"
#include "harness/judge/comparison.h"
#include "harness/judge/report.h"
#include "harness/root.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct CompareOptions {
  std::string a, b;
  std::string policy = "default";
  std::string filter = "*";
  VerdictOutputs outputs;
  BuildsOptions builds;
};

void declare_options(CLI::App& app, CompareOptions& o) {
  app.add_option("A", o.a, "Result file: before; with --exec-a and --exec-b the SUITE")->required();
  app.add_option("B", o.b, "Result file: after");
  add_builds_options(app, o.builds);
  add_policy(
      app, o.policy,
      "Policy whose ratio limit is the margin of `same` and whose spread between runs widens "
      "the intervals");
  add_filter(app, o.filter, "Only cases (rivals: points) whose id matches this glob");
  add_verdict_outputs(app, o.outputs, app.get_option("--exec-a"));
  add_json_flag(app, o.outputs.json);
  app.footer(
      "Ratios are B / A: below 1, B is faster. `faster` and `slower`: the whole interval lies on "
      "one "
      "side of 1;\n`same`: it lies within the margin about 1; `inconclusive`: it can be either. "
      "Rivals measured in turn\nwithin one file are shown below, then serving and scores against "
      "the policy's band or margin. Nothing here fails; that is "
      "`moegauge gate`. Exit codes: 0; 2 bad input;\n4 no case could be compared.\n\n"
      "Two builds are measured in fresh pairs of processes (A B, B A, ...) and judged as moegauge "
      "gate judges:\n"
      "  moegauge compare --exec-a ../before/build/default --exec-b build/default "
      "suites/quick.json\n"
      "Exit codes then: 0; 1 a case is slower, wrong or no longer ok; 2 bad input; 4 no verdict.");
}

int compare_files(const CompareOptions& o, const Environment& environment) {
  if (o.b.empty()) {
    throw InputError("compare", "B is missing",
                     "give two result files, or --exec-a and --exec-b and a suite");
  }
  const std::filesystem::path policy_file = find_policy(o.policy, find_root());
  require_own_places(o.outputs,
                     {{"a result", o.a}, {"a result", o.b}, {"the policy", policy_file}});
  const Policy policy = load_policy(policy_file);
  const Result a = load_for_judging(o.a, environment).result;
  const Result b = load_for_judging(o.b, environment).result;
  SideBySide table = compare(a, b, policy, o.filter);
  Judgement rows;
  judge_end_to_end(std::span(&b, 1), std::span(&a, 1), policy, o.filter, rows);
  table.numbers = std::move(rows.cases);
  table.means = std::move(rows.means);
  const ReportTitle title{.result = o.b, .baseline = o.a};
  if (!o.outputs.markdown.empty()) write_output(o.outputs.markdown, markdown_report(table, title));
  environment.out << (o.outputs.json ? strict_json(json_report(table, title)) + "\n"
                                     : text_report(table, title));
  const bool compared =
      std::ranges::any_of(table.cases,
                          [](const ComparedCase& row) { return row.ratio.has_value(); }) ||
      std::ranges::any_of(table.numbers,
                          [](const CaseVerdict& verdict) { return verdict.number.has_value(); });
  if (compared) return exit_ok;
  environment.err << "moegauge: no case of " << o.a << " could be compared with " << o.b << '\n';
  return exit_no_verdict;
}

int compare(const CompareOptions& o, const Environment& environment) {
  if (o.builds.exec_a.empty()) return compare_files(o, environment);
  if (!o.b.empty()) {
    throw InputError("compare", "'" + o.b + "' is a word too many",
                     "with --exec-a and --exec-b give one suite");
  }
  return compare_builds(
      o.builds, {.suite = o.a, .policy = o.policy, .filter = o.filter, .outputs = o.outputs},
      environment);
}

}  // namespace

Action add_compare(CLI::App& subcommand) {
  auto options = std::make_shared<CompareOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return compare(*options, environment); };
}

}  // namespace moegauge
