#include "harness/commands/calibrate.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "harness/commands/duration.h"
#include "harness/commands/journal_identity.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/preflight.h"
#include "harness/commands/process_progress.h"
#include "harness/commands/results.h"
#include "harness/judge/calibration.h"
#include "harness/judge/calibration_report.h"
#include "harness/judge/counterpart.h"
#include "harness/judge/evidence.h"
#include "harness/measure/session.h"
#include "harness/root.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// The same file for every process, also where it is built anew meanwhile.
constexpr const char* this_program = "/proc/self/exe";

std::vector<MeasuringProcess> planned(const CalibrateOptions& o, const fs::path& suite) {
  const auto count = static_cast<std::size_t>(o.processes);
  std::vector<MeasuringProcess> processes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = process_name(i, count);
    processes.push_back({.name = name,
                         .who = "process " + name,
                         .program = this_program,
                         .arguments = run_words(suite, o.selection)});
  }
  return processes;
}

// Cases that the calibration says nothing about: a line for each that failed, one for all that
// cannot run here.
void name_what_is_left_out(const std::vector<Result>& processes, const Calibration& calibration,
                           std::ostream& err) {
  std::set<std::string> known;
  for (const auto& [device, cases] : calibration) {
    for (const auto& [id, one] : cases) known.insert(id);
  }
  std::size_t not_here = 0;
  for (const CaseRecord& record : representative(processes).cases) {
    if (known.contains(record.id())) continue;
    const Status status = record.status();
    if (status == Status::unsupported || status == Status::refused_config ||
        status == Status::skipped) {
      ++not_here;
      continue;
    }
    const std::string why = why_not_ok(record);
    err << "moegauge: warning: left out: " << record.id() << ": "
        << (why.empty() ? "ok in fewer than two processes" : why) << '\n';
  }
  if (not_here > 0) {
    err << "left out: " << not_here << " cases that do not run here (unsupported, refused_config "
        << "or skipped)\n";
  }
}

int exit_code_of_all(const std::vector<Result>& processes) {
  const bool failed = std::ranges::any_of(
      processes, [](const Result& result) { return exit_code_of_run(result) == exit_case_failed; });
  return failed ? exit_case_failed : exit_ok;
}

int write_and_show(const CalibrateOptions& o, bool json, Calibration known,
                   const std::vector<Result>& processes, const Environment& environment) {
  const Calibration calibration = calibrate(processes);
  name_what_is_left_out(processes, calibration, environment.err);
  const int code = exit_code_of_all(processes);
  if (calibration.empty()) {
    environment.err << "moegauge: no case was ok in two processes, so nothing was written\n";
    return code == exit_ok ? exit_no_verdict : code;
  }
  merge_into(known, calibration);
  std::error_code ignored;
  const fs::path out = o.out;
  make_folder_of(out);
  write_calibration(out, known);
  environment.out << (json ? strict_json(json_report(calibration)) + "\n"
                           : text_report(calibration));
  environment.err << "wrote " << o.out << ", for moegauge gate --calibration " << o.out << '\n';
  return code;
}

}  // namespace

void add_calibrate_options(CLI::App& app, CalibrateOptions& o, CLI::Option& excluded) {
  CLI::Option* calibrate =
      app.add_option("--calibrate", o.suite,
                     "Measure this suite in several processes of this binary, one after the "
                     "other, and write\nhow much each case differs between them")
          ->type_name("SUITE")
          ->excludes(&excluded);
  app.add_option("--processes", o.processes, "How many [8]")
      ->check(CLI::Range(2, 1000))
      ->needs(calibrate);
  app.add_option("--spacing", o.spacing, "Pause between two of them [30s]")->needs(calibrate);
  app.add_option("--out", o.out,
                 "Calibration file [results/local/calibration.json]; cases that it holds already "
                 "are replaced,\nothers stay")
      ->needs(calibrate);
  app.add_option("--keep", o.keep,
                 "Keep each process's result and log in this folder, and go on with what is there "
                 "[OUT.processes,\nremoved when all is measured]")
      ->needs(calibrate);
  add_filter(app, o.selection.filter, "Only cases whose id matches this glob");
  app.get_option(filter_option)->needs(calibrate);
  add_run_selection(app, o.selection, *calibrate);
}

int calibrate_suite(const CalibrateOptions& o, bool json, const Environment& environment) {
  const double spacing = parse_duration(o.spacing, "--spacing");
  const fs::path root = find_root();
  const fs::path suite_file = find_suite(o.suite, root);
  const Suite suite = load_suite(suite_file, root);
  const auto cases = select_cases(suite, o.selection, environment.backends);
  if (cases.empty()) {
    environment.err << "moegauge: no case of " << o.suite << " matches; see moegauge list suites\n";
    return exit_no_verdict;
  }
  check_inputs(cases, suite_file, environment.backends, root);
  const auto read = files_read(cases, suite_file, environment.backends, root);
  require_own_place("--out", o.out, read);
  std::error_code ignored;
  Calibration known = fs::exists(o.out, ignored) ? load_calibration(o.out) : Calibration{};
  const fs::path folder = o.keep.empty() ? o.out + ".processes" : o.keep;
  MeasureSettings settings;
  if (suite.seconds_per_case) settings.stopping.seconds_per_member = *suite.seconds_per_case;
  claim_folder(folder, journal_header(suite.name, settings, cases, read, environment.backends) +
                           "\n" + build_facts(this_program));

  // A layer that cannot run here will not run in the next process either.
  CollectHooks hooks;
  hooks.worth_going_on = [](const std::vector<Result>& results) {
    return results.size() > 1 || any_ok(results.front());
  };
  const Collected collected =
      collect_with_progress(folder, planned(o, suite_file), spacing, environment, hooks);
  if (collected.interrupted_by != 0) {
    environment.err << "moegauge: warning: interrupted, " << collected.results.size() << " of "
                    << o.processes << " processes are done and nothing was written; the same "
                    << "command goes on with " << folder.string() << '\n';
    return 128 + collected.interrupted_by;
  }
  if (!collected.failed.empty()) {
    environment.err << "moegauge: " << collected.failed << '\n';
    return exit_no_verdict;
  }
  const int code = write_and_show(o, json, std::move(known), collected.results, environment);
  if (o.keep.empty()) fs::remove_all(folder, ignored);
  return code;
}

}  // namespace moegauge
