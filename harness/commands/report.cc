#include "harness/commands/report.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/history_judgement.h"
#include "harness/commands/history_options.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/report_input.h"
#include "harness/commands/results.h"
#include "harness/judge/known_issues.h"
#include "harness/report/page.h"

namespace moegauge {
namespace {

struct ReportOptions {
  ReportFiles files;
  std::string history;
  std::string out;
};

void declare_options(CLI::App& app, ReportOptions& o) {
  add_report_files(app, o.files);
  app.add_option("--history", o.history,
                 "History whose runs make the nightly trend; without --baseline they make the "
                 "verdict too")
      ->type_name("FILE");
  app.add_option("--out", o.out, "HTML file to write")->required();
  app.footer(
      "One file that opens from disk: verdict, charts, tables. Filters live in the address, so "
      "that "
      "a link\nshows what you see. Several results make a trend over their dates. Exit codes: 0; 2 "
      "bad input;\n4 the results hold no case, or no such baseline or history.\n\n"
      "  moegauge report now.json --baseline base.json --out report.html\n"
      "  moegauge report now.json --history history.db --out report.html");
}

// By what the history holds of each case.
std::vector<Judgement> judged_by_history(HistoryStore& store, const std::string& filter,
                                         const ReportInput& input) {
  std::vector<Judgement> judgements;
  for (const ReportFile& file : input.files) {
    judgements.push_back(
        judge_by_history({file.result}, input.policy, input.shipped, {}, {.filter = filter}, store)
            .judgement);
    apply_known_issues(judgements.back(), input.policy, today());
    judgements.back().cut = file.cut;
  }
  return judgements;
}

int report(const ReportOptions& o, const Environment& environment) {
  std::vector<NamedFile> taken = named_files(o.files);
  taken.push_back({"the history", o.history});
  require_own_place("--out", o.out, taken);
  if (baseline_is_missing(o.files, environment)) return exit_no_verdict;
  if (history_is_missing(o.history, environment)) return exit_no_verdict;
  ReportInput input = read_report_input(o.files, environment);
  std::vector<Judgement> judgements = judged(input);
  if (!o.history.empty()) {
    const auto store = open_history_or_say(o.history, HistoryAccess::existing, environment);
    if (store == nullptr) return exit_no_verdict;
    add_nightly(*store, o.history, input);
    if (!input.baseline) judgements = judged_by_history(*store, o.files.filter, input);
  }
  std::size_t cases = 0;
  for (const ReportFile& file : input.files)
    cases += file.result.cases.size() + file.result.end_to_end.size();
  const std::string_view bundle = vega_bundle();
  if (bundle.empty()) {
    environment.err << "moegauge: warning: built without the charts' JavaScript, so the page has "
                       "tables only; scripts/setup report, then build again\n";
  }
  write_output(o.out, report_page(input, judgements, bundle));
  if (cases > 0) return exit_ok;
  environment.err << "moegauge: the results hold no case, and so the page none\n";
  return exit_no_verdict;
}

}  // namespace

Action add_report(CLI::App& subcommand) {
  auto options = std::make_shared<ReportOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return report(*options, environment); };
}

}  // namespace moegauge
