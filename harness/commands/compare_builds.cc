#include "harness/commands/compare_builds.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "harness/commands/output_place.h"
#include "harness/commands/process_progress.h"
#include "harness/commands/results.h"
#include "harness/commands/shipped_limits.h"
#include "harness/judge/evidence.h"
#include "harness/judge/judge.h"
#include "harness/judge/known_issues.h"
#include "harness/judge/report.h"
#include "harness/root.h"
#include "reference/base/fnv1a.h"
#include "reference/base/input_error.h"
#include "reference/base/text_file.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct Build {
  std::string name;  // "A"
  std::string folder;
  fs::path program;
};

// In an installed tree or a build folder.
Build find_build(const std::string& name, const std::string& option, const std::string& folder) {
  for (const fs::path& place : {fs::path("moegauge"), fs::path("bin") / "moegauge"}) {
    const fs::path program = fs::path(folder) / place;
    std::error_code ignored;
    if (!fs::is_regular_file(program, ignored)) continue;
    if (::access(program.c_str(), X_OK) != 0) {
      throw InputError(option, program.string() + " cannot be executed", "build it again");
    }
    return {name, folder, fs::absolute(program)};
  }
  throw InputError(option, folder + " holds neither moegauge nor bin/moegauge",
                   "name a build folder or an installed tree");
}

// A B, B A, ...: what drifts evenly is in both halves of a pair, once this way and once that.
std::vector<MeasuringProcess> planned(const Build& a, const Build& b, const fs::path& suite,
                                      const BuildsOptions& o) {
  const auto count = static_cast<std::size_t>(o.pairs);
  const std::vector<std::string> words = run_words(suite, o.selection);
  std::vector<MeasuringProcess> processes;
  for (std::size_t i = 0; i < count; ++i) {
    const Build& first = i % 2 == 0 ? a : b;
    for (const Build* build : {&first, &first == &a ? &b : &a}) {
      processes.push_back({.name = process_name(i, count) + (build == &a ? "-a" : "-b"),
                           .who = "build " + build->name,
                           .program = build->program,
                           .arguments = words});
    }
  }
  return processes;
}

struct Sides {
  std::vector<Result> a, b;
};

// Of whole pairs.
Sides sides_of(const std::vector<Result>& results) {
  Sides sides;
  for (std::size_t i = 0; i + 1 < results.size(); i += 2) {
    const bool a_first = i % 4 == 0;
    sides.a.push_back(results[a_first ? i : i + 1]);
    sides.b.push_back(results[a_first ? i + 1 : i]);
  }
  return sides;
}

std::set<std::string> ids_of(const Result& result) {
  std::set<std::string> ids;
  for (const CaseRecord& record : result.cases) ids.insert(record.id());
  return ids;
}

// Each build finds models of its own, so that one suite may mean two things.
void require_same_cases(const Result& a, const Result& b) {
  const std::set<std::string> in_a = ids_of(a), in_b = ids_of(b);
  const auto refuse = [](const std::string& has, const std::string& id) {
    throw InputError("SUITE", "the builds make other cases of it: only build " + has + " has " + id,
                     "give both the same suite and models");
  };
  for (const std::string& id : in_a) {
    if (!in_b.contains(id)) refuse("A", id);
  }
  for (const std::string& id : in_b) {
    if (!in_a.contains(id)) refuse("B", id);
  }
}

// The first pair shows whether the others are worth their time.
bool worth_going_on(const std::vector<Result>& results) {
  if (results.size() != 2) return true;
  const Sides first = sides_of(results);
  require_same_cases(first.a[0], first.b[0]);
  return any_ok(first.a[0]) && any_ok(first.b[0]);
}

std::string facts_of(const Build& a, const Build& b, const fs::path& suite,
                     const SelectionOptions& selection) {
  std::string facts = "build A " + build_facts(a.program) + "build B " + build_facts(b.program);
  for (const std::string& word : run_words(suite, selection)) facts += word + " ";
  return facts + "\nsuite with content " + fnv1a_hex(read_text_file(suite)) + "\n";
}

fs::path temporary_folder() {
  std::string pattern = (fs::temp_directory_path() / "moegauge-compare-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw InputError(pattern, "no folder can be made there", "name one with --keep");
  }
  return pattern;
}

int judge_and_show(const Sides& sides, const ComparisonOptions& o, const Policy& policy,
                   const ReportTitle& title, const Environment& environment) {
  const Evidence evidence = gather_pairs(sides.b, sides.a);
  Judgement judgement = judge(representative(sides.b), representative(sides.a), policy,
                              shipped_limits(find_root()), "*", evidence);
  apply_known_issues(judgement, policy, today());
  environment.out << (o.outputs.json ? strict_json(json_report(judgement, title)) + "\n"
                                     : text_report_of_builds(judgement, title));
  write_verdicts(o.outputs, judgement, title, environment);
  return exit_code(judgement);
}

}  // namespace

void add_builds_options(CLI::App& app, BuildsOptions& o) {
  CLI::Option* a = app.add_option("--exec-a", o.exec_a,
                                  "Measure the build in this folder, before, against that of "
                                  "--exec-b: A is then the SUITE")
                       ->type_name("DIR");
  CLI::Option* b = app.add_option("--exec-b", o.exec_b, "... after")->type_name("DIR");
  a->needs(b);
  b->needs(a);
  app.add_option("--pairs", o.pairs, "Pairs of processes, one of each build [14]")
      ->check(CLI::Range(2, 1000))
      ->needs(a);
  app.add_option("--keep", o.keep,
                 "Keep each process's result and log in this folder, and go on with what is there")
      ->type_name("DIR")
      ->needs(a);
  add_run_selection(app, o.selection, *a);
}

int compare_builds(const BuildsOptions& builds, const ComparisonOptions& o,
                   const Environment& environment) {
  const fs::path root = find_root();
  const Build a = find_build("A", "--exec-a", builds.exec_a);
  const Build b = find_build("B", "--exec-b", builds.exec_b);
  const fs::path suite = find_suite(o.suite, root);
  const fs::path policy_file = find_policy(o.policy, root);
  require_own_places(o.outputs, {{"the suite", suite}, {"the policy", policy_file}});
  const Policy policy = load_policy(policy_file);
  BuildsOptions asked = builds;
  asked.selection.filter = o.filter;
  if (std::getenv("MOEGAUGE_ROOT") != nullptr) {
    environment.err << "moegauge: warning: MOEGAUGE_ROOT is set, so both builds read the models "
                       "and tuned configs of one tree\n";
  }
  const fs::path folder = builds.keep.empty() ? temporary_folder() : fs::path(builds.keep);
  claim_folder(folder, facts_of(a, b, suite, asked.selection));

  CollectHooks hooks;
  hooks.worth_going_on = worth_going_on;
  const auto processes = planned(a, b, suite, asked);
  const Collected collected = collect_with_progress(folder, processes, 0, environment, hooks);
  if (collected.interrupted_by != 0) {
    environment.err << "moegauge: warning: interrupted, " << collected.results.size() << " of "
                    << processes.size() << " processes are done; go on with --keep "
                    << folder.string() << '\n';
    return 128 + collected.interrupted_by;
  }
  if (!collected.failed.empty()) {
    environment.err << "moegauge: " << collected.failed << '\n';
    return exit_no_verdict;
  }
  const int code = judge_and_show(sides_of(collected.results), o, policy,
                                  {.result = b.folder, .baseline = a.folder}, environment);
  std::error_code ignored;
  if (builds.keep.empty()) fs::remove_all(folder, ignored);
  return code;
}

}  // namespace moegauge
