#include "harness/commands/verdict_outputs.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <ostream>

#include "harness/commands/options.h"

namespace moegauge {
namespace {

void print_github(const Judgement& judgement, const ReportTitle& title,
                  const Environment& environment, std::ostream& out) {
  out << github_annotations(judgement);
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  if (summary == nullptr) return;
  std::ofstream file(summary, std::ios::app);  // other steps write to it too
  file << markdown_report(judgement, title);
  if (!file.flush())
    environment.err << "moegauge: cannot write the step summary " << summary << '\n';
}

}  // namespace

std::ostream& VerdictOutputs::beside(const Environment& environment) const {
  return json ? environment.err : environment.out;
}

void add_verdict_outputs(CLI::App& app, VerdictOutputs& outputs, CLI::Option* with) {
  add_markdown(app, outputs.markdown, "a report for a pull request");
  CLI::Option* junit =
      app.add_option("--junit", outputs.junit, "Also write JUnit XML to this file");
  CLI::Option* github =
      app.add_flag("--github", outputs.github,
                   "Print GitHub annotations, and add the report to the job's step summary");
  if (with == nullptr) return;
  junit->needs(with);
  github->needs(with);
}

void require_own_places(const VerdictOutputs& outputs, std::vector<NamedFile> taken) {
  if (!outputs.junit.empty()) require_own_place("--junit", outputs.junit, taken);
  taken.push_back({"--junit", outputs.junit});
  if (!outputs.markdown.empty()) require_own_place("--markdown", outputs.markdown, taken);
}

void write_verdicts(const VerdictOutputs& outputs, const Judgement& judgement,
                    const ReportTitle& title, const Environment& environment) {
  if (!outputs.markdown.empty()) write_output(outputs.markdown, markdown_report(judgement, title));
  if (!outputs.junit.empty()) write_output(outputs.junit, junit_report(judgement, title));
  if (outputs.github) print_github(judgement, title, environment, outputs.beside(environment));
}

}  // namespace moegauge
