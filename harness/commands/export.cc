#include "harness/commands/export.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

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

int write_export(const ExportCommand& o, const Environment& environment) {
  const ExportFormat& format = format_named(o.format);
  if (!o.out.empty()) require_own_place("--out", o.out, named_files(o.files));
  const ReportInput input = read_report_input(o.files, environment);
  bool any = false;
  for (const ReportFile& file : input.files) any |= !file.result.cases.empty();
  const std::string text = format.write(input, o.how);
  if (o.out.empty()) {
    environment.out << text;
  } else {
    write_output(o.out, text);
  }
  if (any) return exit_ok;
  environment.err << "moegauge: the results hold no case to export\n";
  return exit_no_verdict;
}

}  // namespace

Action add_export(CLI::App& subcommand) {
  auto o = std::make_shared<ExportCommand>();
  add_report_files(subcommand, o->files, Baseline::none);
  subcommand.add_option("--format", o->format, "What to write")->required();
  subcommand.add_option("--chart", o->how.chart, "Which chart of the report, for vega [latency]");
  subcommand.add_option("--out", o->out, "File to write; standard output without it");
  std::string text = "Formats:\n";
  for (const ExportFormat& format : export_formats())
    text += "  " + std::string(format.name) + ": " + std::string(format.description) + "\n";
  subcommand.footer(text +
                    "\nExit codes: 0; 2 bad input; 4 the results hold no case.\n\n"
                    "  moegauge export now.json --format vega --chart errors --out errors.vl.json\n"
                    "  scripts/python scripts/chart.py errors.vl.json errors.svg");
  return [o](const Environment& environment) { return write_export(*o, environment); };
}

}  // namespace moegauge
