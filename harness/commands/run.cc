#include "harness/commands/run.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/checkpoint/checkpoint_experts.h"
#include "harness/commands/duration.h"
#include "harness/commands/interrupt.h"
#include "harness/commands/journal_identity.h"
#include "harness/commands/neighbours.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/preflight.h"
#include "harness/commands/progress.h"
#include "harness/commands/results.h"
#include "harness/commands/run_context.h"
#include "harness/commands/run_outputs.h"
#include "harness/commands/selection.h"
#include "harness/commands/table.h"
#include "harness/commands/table_warnings.h"
#include "harness/json/nearest.h"
#include "harness/measure/prepare.h"
#include "harness/measure/profile.h"
#include "harness/measure/summary.h"
#include "harness/result/result_io.h"
#include "harness/root.h"
#include "harness/worker/runner.h"
#include "reference/base/input_error.h"
#include "reference/ops/op.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string suite;
  SelectionOptions selection;
  std::string out;
  bool resume = false;
  int retries = 0;
  std::string budget;
  std::string timeout = "300s";
  std::uint64_t seed = 0;
  bool stages = false;
  bool quiet = false;
  std::string dump;
  std::string weights;
  std::int64_t layer = -1;
};

void declare_options(CLI::App& app, RunOptions& o) {
  app.add_option("SUITE", o.suite, "Suite file, or its name under suites/")->required();
  app.add_option(
      "--out", o.out,
      "Result file [results/latest.json; none with --iterate]. FILE.partial is written instead\n"
      "by an interrupted run, and where no case is ok and FILE exists");
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
  app.add_option(
      "--budget", o.budget,
      "Start nothing more after this time, e.g. 20m: of each layer and scheme first one batch\n"
      "size, then two more, and so on, in the suite's order");
  app.add_option("--timeout", o.timeout, "Time limit of one case [300s]");
  add_seed(app, o.seed, "Seed of all weights and inputs [0]");
  app.add_flag(
      "--stages", o.stages,
      "Each ok layer's stage times too, where its backend tells them: launched eagerly with\n"
      "events between the stages, so that nothing overlaps and they add up to more");
  app.add_flag("--quiet", o.quiet, "No progress");
  auto* weights = app.add_option(
      "--weights", o.weights, "Take shape, scheme and experts from this Hugging Face checkpoint");
  auto* layer = app.add_option("--layer", o.layer, "... and from this layer of it")
                    ->check(CLI::Range(std::int64_t{0}, max_checkpoint_layers));
  weights->needs(layer);
  layer->needs(weights);
  app.add_option("--dump", o.dump,
                 "Folder for what each case was given and gave: a file case-ID.safetensors each");
  app.add_option("--profile", o.selection.profile,
                 "Only the case with this id, launched once for a profiler: no checks, no result;\n"
                 "ncu --profile-from-start off sees the one launch that counts")
      ->excludes("--iterate")
      ->excludes("--out")
      ->excludes("--resume")
      ->excludes("--dump");
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
  if (!o.weights.empty()) {
    line += " --weights " + shell_quoted(o.weights) + " --layer " + std::to_string(o.layer);
  }
  if (!o.selection.tokens.empty()) line += " --tokens " + std::to_string(c.tokens);
  return line + " --iterate " + shell_quoted(case_id(c)) + " --seed " + std::to_string(o.seed);
}

// The suite's cases with a checkpoint's layer in place of their own, each once.
void take_weights(Suite& suite, const RunOptions& o) {
  if (o.weights.empty()) return;
  const std::optional<std::string> scheme = checkpoint_scheme_of(o.weights);
  std::vector<CaseCoordinates> cases;
  std::set<std::string> seen;
  for (CaseCoordinates c : suite.cases) {
    c.model = (fs::path(o.weights) / "config.json").string();
    c.layer = o.layer;
    c.fields.clear();
    if (scheme) c.scheme = *scheme;
    if (seen.insert(case_id(c)).second) cases.push_back(std::move(c));
  }
  suite.cases = std::move(cases);
}

// Weights of a checkpoint are for whole layers.
void refuse_ops_with_weights(const std::vector<CaseCoordinates>& cases, const Suite& suite,
                             const RunOptions& o) {
  if (o.weights.empty()) return;
  const auto single = [](const CaseCoordinates& c) { return find_op(c.op) != nullptr; };
  const auto found = std::ranges::find_if(cases, single);
  if (found == cases.end()) return;
  const bool layers_too = !std::ranges::all_of(suite.cases, single);
  throw InputError("--weights " + o.weights,
                   "the suite measures the single op " + found->op +
                       ", and a checkpoint's weights are for whole layers",
                   layers_too ? "leave single ops out with --filter '" + CaseCoordinates{}.op + "*'"
                              : "run it without --weights: its weights are generated");
}

// Why nothing is selected.
std::string why_empty(const Suite& suite, const RunOptions& o,
                      std::span<const Backend* const> backends) {
  SelectionOptions whole = o.selection;
  whole.shard.clear();
  std::set<std::string> points;
  for (const CaseCoordinates& c : select_cases(suite, whole, backends)) points.insert(point_id(c));
  if (!points.empty()) {
    return "--shard " + o.selection.shard + " holds no case: " + std::to_string(points.size()) +
           (points.size() == 1 ? " point is" : " points are") +
           " selected, and a shard is of whole points";
  }
  return "no case of " + o.suite + " matches --filter " + in_quotes(o.selection.filter) +
         "; an id is, e.g., " + case_id(suite.cases.front());
}

struct Journaled {
  std::optional<Journal> journal;
  std::vector<std::optional<CaseRecord>> records;  // parallel to the cases
};

Journaled open_journal(const fs::path& out, const std::string& header, bool resume,
                       const std::vector<CaseCoordinates>& cases) {
  Journaled journaled{std::nullopt, std::vector<std::optional<CaseRecord>>(cases.size())};
  if (out.empty()) return journaled;
  std::error_code ignored;
  make_folder_of(out);
  std::vector<CaseRecord> done;
  journaled.journal = Journal::open(out.string() + ".journal", header, resume, done);
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < cases.size(); ++i) at[case_id(cases[i])] = i;
  for (CaseRecord& record : done) {
    const auto known = at.find(record.id());
    // A case that was measured twice (again with its rivals) stands twice: the last one counts.
    if (known != at.end()) journaled.records[known->second] = std::move(record);
  }
  return journaled;
}

RunnerSettings runner_settings(const RunOptions& o, const Suite& suite) {
  RunnerSettings settings;
  settings.measure.seed = o.seed;
  settings.measure.stages = o.stages;
  double& seconds = settings.measure.stopping.seconds_per_member;
  seconds = suite.seconds_per_case.value_or(seconds);
  if (!o.selection.iterate.empty()) {
    settings.measure.max_weight_sets = 8;
    settings.measure.max_weight_bytes = std::int64_t{1} << 30;
    seconds = std::min(seconds, 0.5);
  }
  settings.retries = o.retries;
  settings.dump = o.dump;
  settings.timeout_seconds = parse_duration(o.timeout, "--timeout");
  if (!o.budget.empty()) settings.budget_seconds = parse_duration(o.budget, "--budget");
  return settings;
}

Result assemble(const Suite& suite, const fs::path& suite_file, const RunOptions& o,
                std::vector<std::optional<CaseRecord>> records, const fs::path& root,
                std::span<const Backend* const> backends) {
  Result result;
  result.context = {{"moegauge_version", MOEGAUGE_VERSION},
                    {"suite", suite.name},
                    {"suite_file", suite_file.string()},
                    {"seed", std::to_string(o.seed)}};
  add_commit(root, result.context);
  if (!o.selection.shard.empty()) {
    SelectionOptions whole = o.selection;
    whole.shard.clear();
    add_shard(o.selection.shard, select_cases(suite, whole, backends), suite.seconds_per_case,
              result.context);
  }
  for (auto& record : records) result.cases.push_back(std::move(record).value());
  if (!o.selection.backends.empty() || !o.selection.device.empty()) {
    blame_the_machine_for_absent_backends(result);
  }
  for (const Backend* backend : backends) {
    const auto on_it = [&](const CaseRecord& record) {
      return record.backend == backend->name() && !record.device.empty();
    };
    if (std::ranges::any_of(result.cases, on_it)) {
      add_device_facts(backend->device(), result.context);
    }
  }
  result.comparisons = compare_rivals(result.cases);
  return result;
}

// What is no whole result, or none at all, must not take the place of an earlier good one: a gate
// would find nothing in it, and a nightly job would lose what it compares with.
fs::path place_of(const fs::path& out, const Result& result, bool interrupted) {
  std::error_code ignored;
  const bool earlier = fs::is_regular_file(out, ignored);
  if (!earlier && fs::exists(out, ignored)) return out;  // a device holds nothing to lose
  const bool partial = interrupted || (earlier && !any_ok(result));
  return partial ? fs::path(out.string() + ".partial") : out;
}

// In this process, where a profiler that was started with it looks.
int profile(const CaseCoordinates& c, const RunOptions& o, const fs::path& root,
            const Environment& environment) {
  const auto launched = profile_case(c, environment.backends, root, o.seed);
  if (!launched) {
    environment.err << "moegauge: " << case_id(c) << ": " << to_string(launched.error().status)
                    << ": " << launched.error().reason << '\n';
    return launched.error().status == Status::error ||
                   launched.error().status == Status::out_of_memory
               ? exit_case_failed
               : exit_no_verdict;
  }
  environment.out << "profiled " << case_id(c) << " on " << launched->backend->name()
                  << ": one marked launch after one to warm up, kernel " << launched->identity.hash
                  << ", executed " << launched->identity.executed_scheme << ", nothing checked\n";
  return exit_ok;
}

// Who else holds the devices that cases run on, before or after.
std::set<unsigned> strangers(const std::vector<CaseCoordinates>& cases,
                             std::span<const Backend* const> backends) {
  std::set<unsigned> found;
  for (const Backend* backend : backends) {
    const bool used = std::ranges::any_of(cases, [&](const CaseCoordinates& c) {
      return c.backend == "auto" || c.backend == backend->name();
    });
    if (!used || !backend->availability().present) continue;
    for (const unsigned process : backend->other_processes()) found.insert(process);
  }
  return found;
}

int run(const RunOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  const fs::path suite_file = find_suite(o.suite, root);
  Suite suite = load_suite(suite_file, root);
  const RunnerSettings settings = runner_settings(o, suite);
  take_weights(suite, o);
  const auto cases = select_cases(suite, o.selection, environment.backends);
  if (cases.empty()) {
    environment.err << "moegauge: " << why_empty(suite, o, environment.backends) << '\n';
    return exit_no_verdict;
  }
  refuse_ops_with_weights(cases, suite, o);
  check_inputs(cases, suite_file, environment.backends, root);
  if (!o.selection.profile.empty()) return profile(cases.front(), o, root, environment);

  const bool iterating = !o.selection.iterate.empty();
  const fs::path out = !o.out.empty() ? fs::path(o.out)
                       : iterating    ? fs::path()
                                      : "results/latest.json";
  // Of the whole suite: another selection of its cases goes on with the same journal.
  const std::vector<NamedFile> read =
      files_read(suite.cases, suite_file, environment.backends, root);
  const std::vector<NamedFile> taken = with_weights(read, suite, root);
  require_writable_place(out, taken);
  make_dump_folder(o.dump, taken);
  const std::string header =
      journal_header(suite.name, settings.measure, suite.cases, read, environment.backends);
  Journaled journaled = open_journal(out, header, o.resume, cases);
  remove_old_dumps(o.dump, cases, journaled.records);
  const ProgressStyle style = o.quiet                        ? ProgressStyle::quiet
                              : ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar
                                                             : ProgressStyle::lines;
  const std::size_t already = cases.size() - cases_to_measure(cases, journaled.records);
  if (already > 0 && !o.quiet) {
    environment.err << "resuming: " << already << " of " << cases.size() << " cases are done\n";
  }
  Progress progress(environment.err, style, cases.size(), already);

  std::set<unsigned> others = strangers(cases, environment.backends);
  const Neighbours neighbours;
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

  Result result =
      assemble(suite, suite_file, o, std::move(journaled.records), root, environment.backends);
  std::vector<std::string> warnings = table_warnings(result, root);
  others.merge(strangers(cases, environment.backends));
  for (const std::string& warning : {warm_weights_warning(result), ceilings_warning(result)}) {
    if (!warning.empty()) warnings.push_back(warning);
  }
  for (const std::string& warning : {neighbours.warning(), device_neighbours_warning(others)}) {
    if (warning.empty()) continue;
    warnings.push_back(warning);
    result.context.emplace_back(disturbed_context, warning);
  }
  for (const std::string& warning : warnings) {
    environment.err << "moegauge: warning: " << warning << '\n';
  }
  const fs::path place = out.empty() ? out : place_of(out, result, interrupted_by != 0);
  try {
    if (!place.empty()) write_result(place, result);
  } catch (const InputError& error) {
    environment.out << render_table(result) << std::flush;
    if (journaled.journal) {
      environment.err << "moegauge: warning: the measurements are safe in " << out.string()
                      << ".journal: make room and give the same command with --resume\n";
    }
    throw;
  }
  environment.out << render_table(result) << std::flush;
  if (place != out) {
    environment.err << "moegauge: warning: "
                    << (interrupted_by != 0 ? "interrupted" : "no case is ok")
                    << ", so the result is in " << place.string() << " and " << out.string()
                    << (fs::exists(out) ? " is as it was\n" : " was not written\n");
  } else if (!place.empty() && !o.quiet) {
    environment.err << "wrote " << place.string() << '\n';
  }
  return interrupted_by != 0 ? 128 + interrupted_by : exit_code_of_run(result);
}

}  // namespace

Action add_run(CLI::App& subcommand) {
  auto options = std::make_shared<RunOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return run(*options, environment); };
}

}  // namespace moegauge
