#include "harness/commands/report.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/report_input.h"
#include "harness/report/page.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct ReportOptions {
  ReportFiles files;
  std::string history;
  std::string out;
};

void declare_options(CLI::App& app, ReportOptions& o) {
  add_report_files(app, o.files);
  // For those who look for it; until there is one, help does not promise it.
  app.add_option("--history", o.history, "History database for the nightly trend")->group("");
  app.add_option("--out", o.out, "HTML file to write")->required();
  app.footer(
      "One file that opens from disk: verdict, charts, tables. Filters live in the address, so "
      "that "
      "a link\nshows what you see. Several results make a trend over their dates. Exit codes: 0; 2 "
      "bad input;\n4 the results hold no case.\n\n"
      "  moegauge report now.json --baseline base.json --out report.html");
}

int report(const ReportOptions& o, const Environment& environment) {
  if (!o.history.empty()) {
    throw InputError("--history " + o.history, "this version keeps no history database",
                     "name the nights' result files one after the other");
  }
  const std::vector<NamedFile> taken = named_files(o.files);
  require_own_place("--out", o.out, taken);
  if (std::error_code ignored;
      !o.files.baseline.empty() && !std::filesystem::exists(o.files.baseline, ignored)) {
    environment.err << "moegauge: " << o.files.baseline
                    << ": no such baseline, so no verdict; record one with moegauge run --out\n";
    return exit_no_verdict;
  }
  const ReportInput input = read_report_input(o.files, environment);
  std::size_t cases = 0;
  for (const ReportFile& file : input.files)
    cases += file.result.cases.size() + file.result.end_to_end.size();
  const std::string_view bundle = vega_bundle();
  if (bundle.empty()) {
    environment.err << "moegauge: warning: built without the charts' JavaScript, so the page has "
                       "tables only; scripts/setup report, then build again\n";
  }
  write_output(o.out, report_page(input, judged(input), bundle));
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
