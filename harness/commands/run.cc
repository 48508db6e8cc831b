#include "harness/commands/run.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/duration.h"
#include "harness/commands/interrupt.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/preflight.h"
#include "harness/commands/progress.h"
#include "harness/commands/selection.h"
#include "harness/commands/table.h"
#include "harness/measure/prepare.h"
#include "harness/measure/summary.h"
#include "harness/result/result_io.h"
#include "harness/root.h"
#include "harness/worker/runner.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

// Empty where `text` is a seed. The parser behind it would take -1 and 010 for other numbers.
std::string wrong_seed(std::string& text) {
  const bool digits =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  if (digits && text.size() <= 19 && (text == "0" || text.front() != '0')) return "";
  return "'" + text + "' is no seed; 0 to 9999999999999999999 in decimal digits is";
}

struct RunOptions {
  std::string suite;
  SelectionOptions selection;
  std::string out;
  bool resume = false;
  int retries = 0;
  std::string budget;
  std::string timeout = "300s";
  std::uint64_t seed = 0;
  bool quiet = false;
  std::string dump, profile;
};

void declare_options(CLI::App& app, RunOptions& o) {
  app.add_option("SUITE", o.suite, "Suite file, or its name under suites/")->required();
  app.add_option("--out", o.out, "Result file [results/latest.json; none with --iterate]");
  app.add_option("--backend", o.selection.backends,
                 "Measure on these instead of the suite's: cpu,...")
      ->delimiter(',');
  app.add_option("--device", o.selection.device, "Device of one backend, e.g. cpu:0");
  add_filter(app, o.selection.filter, "Only cases whose id matches this glob");
  app.add_option("--tokens", o.selection.tokens,
                 "These batch sizes instead of the suite's: 1,16 or 1-4096*2");
  app.add_option("--shard", o.selection.shard, "Part I of N of the points: I/N");
  app.add_option("--iterate", o.selection.iterate,
                 "Only the case with this id, and no result file");
  app.add_flag("--resume", o.resume,
               "Go on with the journal that an earlier run left beside --out");
  app.add_option("--retries", o.retries,
                 "Repeats of a case that failed before its first launch [0]")
      ->check(CLI::Range(0, 100));
  app.add_option("--budget", o.budget,
                 "Start nothing more after this time, e.g. 20m; in the suite's order");
  app.add_option("--timeout", o.timeout, "Time limit of one case [300s]");
  app.add_option("--seed", o.seed, "Seed of all weights and inputs [0]")
      ->check(CLI::Validator(&wrong_seed, "DIGITS"));
  app.add_flag("--quiet", o.quiet, "No progress");
  app.add_option("--dump", o.dump, "")->group("");
  app.add_option("--profile", o.profile, "")->group("");
}

std::string shell_quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./=:,+-") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The command that repeats one case: the overrides that made it, then its id.
std::string repro_line(const RunOptions& o, const CaseCoordinates& c) {
  std::string line = "moegauge run " + shell_quoted(o.suite);
  if (!o.selection.backends.empty() || !o.selection.device.empty())
    line += " --backend " + c.backend;
  if (!o.selection.tokens.empty()) line += " --tokens " + std::to_string(c.tokens);
  return line + " --iterate " + shell_quoted(case_id(c)) + " --seed " + std::to_string(o.seed);
}

// Changes with every build: a journal of other kernels must not be taken for this one's.
std::string build_identity() {
  std::error_code ignored;
  const fs::path self = "/proc/self/exe";
  const auto written = fs::last_write_time(self, ignored).time_since_epoch().count();
  const std::string text = std::to_string(fs::file_size(self, ignored)) + std::to_string(written);
  return std::to_string(std::hash<std::string>{}(text) % 1'000'000);
}

// Journals hold what one suite, seed, build and machine gave; resuming another's would mix results.
std::string journal_header(const Suite& suite, const RunOptions& o,
                           std::span<const Backend* const> backends) {
  std::string devices;
  for (const Backend* backend : backends) {
    if (backend->availability().present) devices += " " + device_key(backend->device());
  }
  std::size_t cases = 0;
  for (const CaseCoordinates& c : suite.cases) {
    cases = cases * 31 + std::hash<std::string>{}(case_id(c));
  }
  return "moegauge.journal/1 suite " + suite.name + " seed " + std::to_string(o.seed) + devices +
         " cases " + std::to_string(cases % 1'000'000) + " build " + build_identity();
}

// Before anything is measured. The journal beside the result counts: it is written over, or set
// aside, just the same.
void require_writable_place(const fs::path& out, std::span<const NamedFile> read) {
  if (out.empty()) return;
  const std::string journal = out.string() + ".journal";
  for (const fs::path& place : {out, fs::path(journal), fs::path(journal + ".old")}) {
    require_own_place("--out", place, read);
  }
}

struct Journaled {
  std::optional<Journal> journal;
  std::vector<std::optional<CaseRecord>> records;  // parallel to the cases
};

Journaled open_journal(const fs::path& out, const Suite& suite, const RunOptions& o,
                       const std::vector<CaseCoordinates>& cases,
                       std::span<const Backend* const> backends) {
  Journaled journaled{std::nullopt, std::vector<std::optional<CaseRecord>>(cases.size())};
  if (out.empty()) return journaled;
  std::error_code ignored;
  if (out.has_parent_path()) fs::create_directories(out.parent_path(), ignored);
  std::vector<CaseRecord> done;
  journaled.journal =
      Journal::open(out.string() + ".journal", journal_header(suite, o, backends), o.resume, done);
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < cases.size(); ++i) at[case_id(cases[i])] = i;
  for (CaseRecord& record : done) {
    const auto known = at.find(record.id());
    // A case that was measured twice (again with its rivals) stands twice: the last one counts.
    if (known != at.end()) journaled.records[known->second] = std::move(record);
  }
  forget_incomplete_points(cases, journaled.records);
  return journaled;
}

RunnerSettings runner_settings(const RunOptions& o) {
  RunnerSettings settings;
  settings.measure.seed = o.seed;
  if (!o.selection.iterate.empty()) settings.measure.max_weight_sets = 8;
  settings.retries = o.retries;
  settings.timeout_seconds = parse_duration(o.timeout, "--timeout");
  if (!o.budget.empty()) settings.budget_seconds = parse_duration(o.budget, "--budget");
  return settings;
}

Result assemble(const Suite& suite, const fs::path& suite_file, const RunOptions& o,
                std::vector<std::optional<CaseRecord>> records) {
  Result result;
  result.context = {{"moegauge_version", MOEGAUGE_VERSION},
                    {"suite", suite.name},
                    {"suite_file", suite_file.string()},
                    {"seed", std::to_string(o.seed)}};
  for (auto& record : records) result.cases.push_back(std::move(record).value());
  result.comparisons = compare_rivals(result.cases);
  return result;
}

int exit_code(const Result& result) {
  bool any_ok = false, any_failed = false;
  for (const CaseRecord& record : result.cases) {
    switch (record.status()) {
      case Status::ok:
        any_ok = true;
        break;
      case Status::inaccurate:
      case Status::crashed:
      case Status::timeout:
      case Status::out_of_memory:
      case Status::error:
        any_failed = true;
        break;
      case Status::unsupported:
      case Status::refused_config:
      case Status::infrastructure:
      case Status::skipped:
        break;
    }
  }
  return any_failed ? exit_case_failed : any_ok ? exit_ok : exit_no_verdict;
}

void refuse_later_options(const RunOptions& o) {
  for (const auto& [option, value] :
       {std::pair("--dump", &o.dump), std::pair("--profile", &o.profile)}) {
    if (!value->empty()) throw InputError(option, "not built yet in this version", "leave it out");
  }
}

int run(const RunOptions& o, const Environment& environment) {
  refuse_later_options(o);
  const RunnerSettings settings = runner_settings(o);
  const fs::path root = find_root();
  const fs::path suite_file = find_suite(o.suite, root);
  const Suite suite = load_suite(suite_file, root);
  const auto cases = select_cases(suite, o.selection, environment.backends);
  if (cases.empty()) {
    environment.err << "moegauge: no case of " << o.suite << " matches; see moegauge list suites\n";
    return exit_no_verdict;
  }
  check_inputs(cases, suite_file, environment.backends, root);

  const bool iterating = !o.selection.iterate.empty();
  const fs::path out = !o.out.empty() ? fs::path(o.out)
                       : iterating    ? fs::path()
                                      : "results/latest.json";
  require_writable_place(out, files_read(cases, suite_file, environment.backends, root));
  Journaled journaled = open_journal(out, suite, o, cases, environment.backends);
  const ProgressStyle style = o.quiet                        ? ProgressStyle::quiet
                              : ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar
                                                             : ProgressStyle::lines;
  const auto already = std::ranges::count_if(journaled.records,
                                             [](const auto& record) { return record.has_value(); });
  if (already > 0 && !o.quiet) {
    environment.err << "resuming: " << already << " of " << cases.size() << " cases are done\n";
  }
  Progress progress(environment.err, style, cases.size(), static_cast<std::size_t>(already));

  int interrupted_by = 0;
  {
    const InterruptGuard guard;
    const RunnerHooks hooks{.started = [&](const CaseCoordinates& c) { progress.started(c); },
                            .finished =
                                [&](const CaseRecord& record) {
                                  if (journaled.journal) journaled.journal->append(record);
                                  progress.finished(record);
                                },
                            .repro = [&](const CaseCoordinates& c) { return repro_line(o, c); },
                            .interrupted = [&] { return guard.signal() != 0; },
                            .wait_mask = guard.wait_mask()};
    run_cases(cases, journaled.records, settings, hooks);
    interrupted_by = guard.signal();
  }
  progress.clear();

  const Result result = assemble(suite, suite_file, o, std::move(journaled.records));
  if (!out.empty()) write_result(out, result);
  environment.out << render_table(result) << std::flush;
  if (!out.empty() && !o.quiet) environment.err << "wrote " << out.string() << '\n';
  return interrupted_by != 0 ? 128 + interrupted_by : exit_code(result);
}

}  // namespace

Action add_run(CLI::App& subcommand) {
  auto options = std::make_shared<RunOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return run(*options, environment); };
}

}  // namespace moegauge
