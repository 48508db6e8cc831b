#include "harness/commands/tune.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "harness/commands/duration.h"
#include "harness/commands/interrupt.h"
#include "harness/commands/journal_identity.h"
#include "harness/commands/neighbours.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/progress.h"
#include "harness/commands/tune_setup.h"
#include "harness/judge/text_table.h"
#include "harness/measure/prepare.h"
#include "harness/measure/summary.h"
#include "harness/result/result_io.h"
#include "harness/root.h"
#include "harness/tune/bench.h"
#include "harness/tune/report.h"
#include "harness/tune/tune.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

void declare_options(CLI::App& app, TuneOptions& o) {
  app.add_option("--model", o.asked.model, "Name of a model, or the path of a config.json")
      ->required();
  app.add_option("--scheme", o.asked.scheme, "Number formats, as moegauge list schemes names them")
      ->required();
  app.add_option("--tp", o.asked.tp, "Tensor-parallel ranks [1]")->check(CLI::Range(1, 1 << 20));
  app.add_option("--ep", o.asked.ep, "Expert-parallel ranks [1]")->check(CLI::Range(1, 1 << 20));
  app.add_option("--tokens", o.tokens,
                 "Batch sizes to tune: 1,16 or 1-4096*2 [the keys of --base, else 1-8192*2]");
  app.add_option("--routing", o.asked.routing, "Routing law that is tuned for [uniform]");
  app.add_option("--backend", o.asked.backend, "Backend to tune [auto]");
  app.add_option("--device", o.device, "Its device, e.g. cuda:0");
  app.add_option("--out", o.out, "Tuned file [results/local/ and the name that lookup expects]");
  app.add_option("--base", o.base,
                 "Start from this tuned file: an entry is displaced only by a significant win.\n"
                 "May be --out");
  app.add_option("--min-win", o.min_win, "Least time a config must save to get a key [2%]");
  app.add_option("--candidates", o.candidates, "Most candidates of a key, the likely first [32]")
      ->check(CLI::Range(1, 100000));
  app.add_option(
         "--seconds-per-key", o.seconds_per_key,
         "After this time a key's finalists are settled [15, or the key's share of half the\n"
         "--budget]")
      ->check(CLI::Range(0.1, 1e6));
  app.add_flag("--no-between", o.no_between, "Do not check batch sizes between keys");
  app.add_option("--budget", o.budget,
                 "Start nothing more after this time, e.g. 20m: what is finished is written");
  app.add_option("--timeout", o.timeout, "Time limit of one candidate [120s]");
  add_seed(app, o.seed, "Seed of the search; the final run has the next one [0]");
  app.add_flag("--resume", o.resume,
               "Go on with the journal that an earlier tune left beside --out");
  app.add_flag("--dry-run", o.dry_run, "Say what would be measured, and measure nothing");
  add_markdown(app, o.markdown, "the table for the pull request");
  app.add_option("--result", o.result, "Also write the final run as a result file");
  app.add_flag("--quiet", o.quiet, "No progress");
  app.footer(
      "For each batch size, candidates are checked, then timed against the default in alternation, "
      "with cold weights;\nthe better third goes on, with more rounds, and the last are measured "
      "on fresh inputs. A key is written where one\nsurely wins by --min-win. The file is then "
      "read back through the run path on another seed. Exit codes: 0 fine;\n2 bad input; 3 a "
      "default that is wrong or fails, or a file that did not run as decided; 4 nothing "
      "measured.\n\n"
      "  moegauge tune --model qwen3-30b-a3b --scheme fp8_block --backend cuda --budget 8m\n"
      "  cp results/local/E=128,...json kernels/cuda/configs/    # now config `tuned` finds it");
}

void print_plan(const TuneSetup& setup, const std::vector<KeyPlan>& plans, std::ostream& out) {
  TextTable table({Align::right, Align::right, Align::left, Align::left});
  table.add({"M", "candidates", "default", "in --base"});
  for (const KeyPlan& plan : plans) {
    table.add(
        {std::to_string(plan.tokens),
         std::to_string(plan.candidates.size()) +
             (plan.left_out > 0 ? " of " + std::to_string(plan.candidates.size() + plan.left_out)
                                : ""),
         inline_config(plan.standard),
         plan.incumbent ? inline_config(*plan.incumbent)
         : plan.in_base ? "the default"
                        : "-"});
  }
  out << setup.backend->name() << ", " << device_key(setup.backend->device()) << "\n"
      << table.str() << "at most " << records_at_most(plans, setup.search)
      << " measurements, about " << duration_text(setup.search.seconds_per_key)
      << " a key; would write " << setup.out.string() << '\n';
}

std::string header_of(const TuneOptions& o, const TuneSetup& setup,
                      const std::vector<KeyPlan>& plans, const Environment& environment,
                      const fs::path& root) {
  std::vector<NamedFile> read = {{"the model", model_file(o.asked.model, root)}};
  if (!o.base.empty()) read.push_back({"--base", o.base});
  return journal_header("tune", setup.runner.measure, search_cases(setup.asked, plans), read,
                        environment.backends) +
         "\nmin-win " + o.min_win + "\nout " + setup.out.string();
}

int exit_code(const TuneOutcome& outcome) {
  const bool failed = std::ranges::any_of(outcome.decisions, [](const KeyDecision& d) {
    return d.verdict == KeyVerdict::unfinished && d.reason.starts_with("the default is ");
  });
  if (failed || (!outcome.unproven.empty() && outcome.ended.empty())) return exit_case_failed;
  const bool none = std::ranges::all_of(
      outcome.decisions, [](const KeyDecision& d) { return d.verdict == KeyVerdict::unfinished; });
  return none ? exit_no_verdict : exit_ok;
}

void write_final_run(const std::string& file, const TuneOptions& o, const TuneOutcome& outcome) {
  if (file.empty() || outcome.read_back.empty()) return;
  Result result;
  result.context = {{"moegauge_version", MOEGAUGE_VERSION},
                    {"suite", "tune"},
                    {"seed", std::to_string(o.seed + 1)}};
  for (const auto& [tokens, pair] : outcome.read_back) {
    result.cases.push_back(pair.standard);
    result.cases.push_back(pair.tuned);
  }
  result.comparisons = compare_rivals(result.cases);
  make_folder_of(file);
  write_result(file, result);
}

void print_outcome(const TuneOptions& o, const TuneSetup& setup, const TuneOutcome& outcome,
                   const Environment& environment) {
  std::ostream& out = environment.out;
  const std::string dropped = dropped_list(outcome);
  out << decision_list(outcome) << outcome.tried << " candidates tried"
      << (outcome.untried > 0 ? ", " + std::to_string(outcome.untried) + " not for want of time"
                              : "")
      << ", " << outcome.dropped.size() << " dropped\n"
      << dropped;
  if (outcome.table.entries.empty()) {
    out << (outcome.ended.empty() ? "no key beats the default, so no file was written\n"
                                  : "no key was decided before the end: no file was written\n");
  } else {
    std::size_t entries = 0;
    for (const KeyDecision& d : outcome.decisions)
      entries += outcome.table.entries.contains(d.tokens);
    const fs::path& written = outcome.held_back ? setup.draft : setup.out;
    out << "wrote " << written.string() << ": " << outcome.table.entries.size() << " entries; "
        << entries - outcome.unproven.size() << " of " << entries
        << " read back through the run path and run as decided, by their hashes\n";
  }
  const std::string table = pull_request_table(outcome);
  if (!table.empty()) out << '\n' << table;
  out << std::flush;
  for (const std::string& sentence : outcome.unproven) {
    environment.err << "moegauge: warning: " << sentence << '\n';
  }
  if (!outcome.ended.empty()) {
    environment.err << "moegauge: warning: cut short (" << outcome.ended << "): "
                    << (outcome.held_back ? setup.out.string() +
                                                " is as it was, since not all of the new file was "
                                                "read back; --resume goes on\n"
                                          : "what was finished is written; --resume goes on\n");
  }
  if (!o.markdown.empty()) write_output(o.markdown, table);
}

int tune_command(const TuneOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  PreparedTune prepared = prepare_tune(o, environment, root);
  TuneSetup& setup = prepared.setup;
  if (setup.backend == nullptr) {
    environment.err << "moegauge: nobody to tune for this layer: " << prepared.missing << '\n';
    return exit_no_verdict;
  }
  const std::vector<KeyPlan> plans = plan_keys(setup);
  if (std::ranges::all_of(plans, [](const KeyPlan& p) { return p.candidates.empty(); })) {
    environment.err << "moegauge: the " << setup.backend->name()
                    << " backend has no candidate configs for this layer\n";
    return exit_no_verdict;
  }
  if (o.dry_run) {
    print_plan(setup, plans, environment.out);
    return exit_ok;
  }
  std::error_code ignored;
  if (!o.base.empty() && fs::equivalent(setup.out, o.base, ignored) && !o.quiet) {
    environment.err << "--out is --base: " << setup.out.string() << " will be replaced\n";
  }
  make_folder_of(setup.out);
  TuneJournal journal = TuneJournal::open(setup.out.string() + ".journal",
                                          header_of(o, setup, plans, environment, root), o.resume);
  if (journal.size() > 0 && !o.quiet) {
    environment.err << "resuming: " << journal.size() << " measurements are done\n";
  }
  const ProgressStyle style = o.quiet                        ? ProgressStyle::quiet
                              : ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar
                                                             : ProgressStyle::lines;
  Progress progress(environment.err, style, records_at_most(plans, setup.search), 0);
  std::size_t expected = 0;
  setup.key_done = [&](const KeyPlan& plan) {
    progress.advance_to(expected += records_at_most(plan, setup.search));
  };
  const Neighbours neighbours;
  TuneOutcome outcome;
  int interrupted_by = 0;
  {
    const InterruptGuard guard;
    const RunnerHooks hooks{
        .started = [&](const CaseCoordinates& c) { progress.started(c); },
        .finished = [&](const CaseRecord& record) { progress.finished(record); },
        .repro = [](const CaseCoordinates&) { return std::string(); },
        .interrupted = [&] { return guard.signal() != 0; },
        .wait_mask = guard.wait_mask()};
    outcome = tune(setup, plans, hooks, &journal);
    interrupted_by = guard.signal();
  }
  progress.clear();
  write_final_run(o.result, o, outcome);
  print_outcome(o, setup, outcome, environment);
  if (const std::string warning = neighbours.warning(); !warning.empty()) {
    environment.err << "moegauge: warning: " << warning << '\n';
  }
  return interrupted_by != 0 ? 128 + interrupted_by : exit_code(outcome);
}

}  // namespace

Action add_tune(CLI::App& subcommand) {
  auto options = std::make_shared<TuneOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return tune_command(*options, environment); };
}

}  // namespace moegauge
