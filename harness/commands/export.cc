#include "harness/commands/export.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/history_options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/report_input.h"
#include "harness/export/export.h"
#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

struct ExportCommand {
  ReportFiles files;
  std::string format;
  std::string history;
  std::string out;
  ExportOptions how;
};

const ExportFormat& format_named(const std::string& name) {
  std::string names;
  for (const ExportFormat& format : export_formats()) {
    if (format.name == name) return format;
    names += (names.empty() ? "" : ", ") + std::string(format.name);
  }
  throw InputError("--format " + name, "no such format", names);
}

int write_export(ExportCommand o, const Environment& environment) {
  const ExportFormat& format = format_named(o.format);
  std::vector<NamedFile> taken = named_files(o.files);
  taken.push_back({"the history", o.history});
  if (!o.out.empty()) require_own_place("--out", o.out, taken);
  for (const auto& [option, file] :
       {std::pair("--baseline ", o.files.baseline), {"--history ", o.history}}) {
    if (!file.empty() && !format.draws)
      throw InputError(option + file, "it is drawn in charts only", "--format vega, or neither");
  }
  if (baseline_is_missing(o.files, environment) || history_is_missing(o.history, environment))
    return exit_no_verdict;
  ReportInput input = read_report_input(o.files, environment);
  o.how.judgements = judged(input);
  if (!o.history.empty()) {
    const auto store = open_history_or_say(o.history, HistoryAccess::existing, environment);
    if (store == nullptr) return exit_no_verdict;
    add_nightly(*store, o.history, input);
  }
  const Exported made = format.write(input, o.how);
  if (o.out.empty()) {
    environment.out << made.text;
  } else {
    write_output(o.out, made.text);
  }
  if (!made.left_out.empty())
    environment.err << "moegauge: " << format.name << ' ' << made.left_out << '\n';
  if (made.count > 0) return exit_ok;
  environment.err << "moegauge: the results hold nothing that " << format.name << " can show\n";
  return exit_no_verdict;
}

}  // namespace

Action add_export(CLI::App& subcommand) {
  auto o = std::make_shared<ExportCommand>();
  add_report_files(subcommand, o->files);
  subcommand.add_option("--format", o->format, "What to write")->required();
  subcommand.add_option("--chart", o->how.chart, "Which chart of the report, for vega [latency]");
  subcommand
      .add_option("--history", o->history, "History whose runs the chart `history` draws, for vega")
      ->type_name("FILE");
  subcommand.add_option("--out", o->out, "File to write; standard output without it");
  std::string text = "Formats:\n";
  for (const ExportFormat& format : export_formats())
    text += "  " + std::string(format.name) + ": " + std::string(format.description) + "\n";
  subcommand.footer(text +
                    "\nExit codes: 0; 2 bad input; 4 the results hold nothing that it can show.\n\n"
                    "  moegauge export now.json --format vega --chart errors --out errors.vl.json\n"
                    "  scripts/python scripts/chart.py errors.vl.json errors.svg");
  return [o](const Environment& environment) { return write_export(*o, environment); };
}

}  // namespace moegauge
