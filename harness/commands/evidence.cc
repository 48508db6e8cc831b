#include "harness/commands/evidence.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "harness/commands/output_place.h"
#include "harness/commands/report_input.h"
#include "harness/report/evidence_page.h"

namespace moegauge {
namespace {

struct EvidenceOptions {
  ReportFiles files;
  std::string out;
};

int write_evidence(const EvidenceOptions& o, const Environment& environment) {
  if (!o.out.empty()) require_own_place("--out", o.out, named_files(o.files));
  if (baseline_is_missing(o.files, environment)) return exit_no_verdict;
  const ReportInput input = read_report_input(o.files, environment);
  bool any = false;
  for (const ReportFile& file : input.files)
    any |= !file.result.cases.empty() || !file.result.end_to_end.empty();
  const std::string page = evidence_page(input, judged(input));
  if (o.out.empty()) {
    environment.out << page;
  } else {
    write_output(o.out, page);
  }
  if (any) return exit_ok;
  environment.err << "moegauge: the results hold nothing to show\n";
  return exit_no_verdict;
}

}  // namespace

Action add_evidence(CLI::App& subcommand) {
  auto o = std::make_shared<EvidenceOptions>();
  add_report_files(subcommand, o->files);
  subcommand.add_option("--out", o->out, "Markdown file to write; standard output without it");
  subcommand.footer(
      "What was compared and on what, latency per batch size, errors, serving, accuracy, verdicts, "
      "the commands\nthat repeat it, and what it does not show. Under 60 kB: what matters most "
      "stands first, the rest is folded\nor left out, and the page says how much. Exit codes: 0, "
      "whatever the verdict; 2 bad input; 4 nothing to show,\nor no baseline file.\n\n"
      "  moegauge evidence now.json served.json --baseline before.json --out evidence.md");
  return [o](const Environment& environment) { return write_evidence(*o, environment); };
}

}  // namespace moegauge
