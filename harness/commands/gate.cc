#include "harness/commands/gate.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/history_add.h"
#include "harness/commands/history_judgement.h"
#include "harness/commands/history_options.h"
#include "harness/commands/options.h"
#include "harness/commands/output_place.h"
#include "harness/commands/results.h"
#include "harness/commands/shipped_limits.h"
#include "harness/commands/verdict_outputs.h"
#include "harness/endtoend/judge_rows.h"
#include "harness/history/baseline.h"
#include "harness/history/summary.h"
#include "harness/judge/calibration.h"
#include "harness/judge/evidence.h"
#include "harness/judge/judge.h"
#include "harness/judge/known_issues.h"
#include "harness/judge/report.h"
#include "harness/root.h"
#include "harness/suite/select.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

namespace fs = std::filesystem;

struct GateOptions {
  std::vector<std::string> results, baselines;
  std::string history, accept, reason;
  std::size_t last = HistoryBaselineSettings{}.last;
  std::string calibration;
  std::string policy = "default";
  std::string filter = "*";
  std::string explain;
  bool add = false;
  VerdictOutputs outputs;
};

void declare_options(CLI::App& app, GateOptions& o) {
  app.add_option("RESULT", o.results,
                 "Result file to judge; several are several processes of the same cases")
      ->required();
  auto* baseline = app.add_option("--baseline", o.baselines,
                                  "Result file to judge it against; several are several processes")
                       ->expected(1, -1);
  auto* history = app.add_option("--history", o.history,
                                 "Judge it against the last runs of this history, and its anchors")
                      ->type_name("FILE")
                      ->excludes(baseline);
  app.add_option("--last", o.last, "How many runs of the history [10]")
      ->check(CLI::Range(1, 100))
      ->needs(history);
  auto* add =
      app.add_flag(
             "--add", o.add,
             "Then add RESULT to the history, which is made where it is not there: cases that\n"
             "fail, or cannot be compared, are kept and are no baseline until accepted")
          ->needs(history);
  auto* accept =
      app.add_option("--accept", o.accept,
                     "Judge nothing: make RESULT, which the history holds, the anchor of the case\n"
                     "with this id, or of those that match this glob")
          ->needs(history);
  auto* reason =
      app.add_option("--reason", o.reason, "... and keep who did so, when, and this why");
  accept->needs(reason);
  reason->needs(accept);
  accept->excludes(add);
  app.add_option("--calibration", o.calibration,
                 "How much processes differ on this device: a file of moegauge doctor --calibrate");
  add_policy(app, o.policy, "Name of a shipped policy, or a policy file");
  add_filter(app, o.filter, "Only cases whose id matches this glob, on both sides");
  app.add_option("--explain", o.explain,
                 "Print every number behind the cases that match this glob");
  add_verdict_outputs(app, o.outputs, nullptr);
  add_json_flag(app, o.outputs.json, "the text, and what --explain and --github print on stderr");
  app.footer(
      "A case fails when its latency is surely more than the policy's limit above the baseline, "
      "when "
      "an error\nexceeds its limit or grew, or when it was ok and no longer is. Exit codes: 0 "
      "pass; 1 "
      "a case failed;\n2 bad input; 4 no verdict: no baseline file, nothing matched, a case "
      "without "
      "counterpart or of another\ndevice, a file that was cut, nothing but inconclusive cases, or "
      "one under a strict policy.\n"
      "Serving and scores (moegauge ingest): each number against the policy's band, each score by "
      "its margin.\n\n"
      "  moegauge run suites/quick.json --out base.json\n"
      "  (change a kernel, build)\n"
      "  moegauge run suites/quick.json --out now.json\n"
      "  moegauge gate now.json --baseline base.json --markdown gate.md\n\n"
      "One process against one sees large changes only. Several results and baselines are judged "
      "as processes:\n"
      "  moegauge gate now1.json now2.json now3.json --baseline night*.json --calibration "
      "c.json\n\n"
      "Against a history, drift fails too: slowly slower than the anchor is slower.\n"
      "  moegauge gate now.json --history history.db --add");
}

bool print_explanations(const Judgement& judgement, const std::string& glob, std::ostream& out) {
  bool any = false;
  for (const CaseVerdict& verdict : judgement.cases) {
    if (!matches_glob(glob, verdict.id)) continue;
    out << (any ? "\n" : "") << text_explanation(verdict);
    any = true;
  }
  return any;
}

// Before anything is read, so that a wrong command line costs nothing.
void require_sense(const GateOptions& o, const fs::path& policy) {
  if (o.baselines.empty() && o.history.empty())
    throw InputError("gate", "nothing to judge it against", "give --baseline or --history");
  if (o.add && o.filter != "*") {
    throw InputError("--add", "--filter leaves cases unjudged, which would then be a baseline",
                     "judge all cases of what is added");
  }
  std::vector<NamedFile> taken = {NamedFile{"the policy", policy},
                                  NamedFile{"the calibration", o.calibration}};
  for (const std::string& file : o.results) taken.push_back({"the result", file});
  for (const std::string& file : o.baselines) taken.push_back({"the baseline", file});
  taken.push_back({"the history", o.history});
  require_own_places(o.outputs, std::move(taken));
}

struct Side {
  std::vector<Result> processes;
  std::string cut;    // where the first file that was cut was cut
  std::string title;  // as a report names them
};

// All that a process measured. One case may be alike by chance: at 0 tokens nothing is launched,
// and each of its samples is 0.
using Measurements = std::vector<std::pair<std::string, std::vector<double>>>;

Measurements measurements(const Result& result) {
  Measurements all;
  bool any = false;
  for (const CaseRecord& record : result.cases) {
    if (record.measured() == nullptr) continue;
    all.emplace_back(record.id(), record.measured()->latency.samples);
    any = any || std::ranges::any_of(all.back().second, [](double s) { return s != 0; });
  }
  return any ? all : Measurements{};
}

// One process given twice would count as two that agree in every digit.
void refuse_repeated(const std::vector<std::string>& files, const std::vector<Result>& processes) {
  std::map<Measurements, std::size_t> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    Measurements measured = measurements(processes[i]);
    if (measured.empty()) continue;
    const auto [known, is_new] = seen.emplace(std::move(measured), i);
    if (is_new) continue;
    throw InputError(files[i], "the same measurements as " + files[known->second],
                     "give each process once");
  }
}

Side load_side(const std::vector<std::string>& files, const Environment& environment) {
  Side side;
  for (const std::string& file : files) {
    LoadedResult loaded = load_for_judging(file, environment);
    if (side.cut.empty()) side.cut = loaded.truncated.value_or("");
    side.processes.push_back(std::move(loaded.result));
  }
  refuse_repeated(files, side.processes);
  side.title = files.front();
  if (files.size() > 1) side.title += " and " + std::to_string(files.size() - 1) + " more";
  return side;
}

// Against what, and how it was found.
struct Judged {
  Judgement judgement = {};
  std::string baseline_title = {};
  std::set<std::string> held = {};  // ids of cases that are to be no baseline
};

// Drivers, power caps and the like differ where both sides tell them: another device to the judge.
void tell_devices_apart(std::vector<Result>& results, std::vector<Result>& baselines) {
  std::map<std::string, std::set<std::string>> keys;  // by the device that records name
  const auto each_record = [&](const auto& act) {
    for (auto* side : {&results, &baselines}) {
      for (Result& result : *side) {
        for (CaseRecord& record : result.cases) {
          std::string key = history_device_key(record.device, result);
          if (key != record.device) act(record, std::move(key));
        }
      }
    }
  };
  each_record([&](CaseRecord& record, std::string key) { keys[record.device].insert(key); });
  each_record([&](CaseRecord& record, std::string key) {
    const auto known = keys.find(record.device);
    if (known != keys.end() && known->second.size() > 1) record.device = std::move(key);
  });
}

Judged judge_files(const GateOptions& o, const Policy& policy, const Calibration& calibration,
                   const fs::path& root, Side& result, const Environment& environment) {
  Side baseline = load_side(o.baselines, environment);
  tell_devices_apart(result.processes, baseline.processes);
  const Evidence evidence = gather(result.processes, baseline.processes, calibration);
  Judgement end_to_end;
  judge_end_to_end(result.processes, baseline.processes, policy, o.filter, end_to_end);
  Judged judged{.baseline_title = baseline.title};
  judged.judgement = judge(representative(std::move(result.processes)),
                           representative(std::move(baseline.processes)), policy,
                           shipped_limits(root), o.filter, evidence);
  std::ranges::move(end_to_end.cases, std::back_inserter(judged.judgement.cases));
  judged.judgement.means = std::move(end_to_end.means);
  judged.judgement.cut = !result.cut.empty() ? result.cut : baseline.cut;
  return judged;
}

Judged judge_history(const GateOptions& o, const Policy& policy, const Calibration& calibration,
                     const fs::path& root, Side& result, HistoryStore& store) {
  Judged judged{.baseline_title = o.history + ", the last " + std::to_string(o.last) +
                                  " ok runs of each case and its anchor"};
  JudgedByHistory by_history =
      judge_by_history(result.processes, policy, shipped_limits(root), calibration,
                       {.last = o.last, .filter = o.filter}, store);
  judged.judgement = std::move(by_history.judgement);
  judged.held = std::move(by_history.held);
  judged.judgement.cut = result.cut;
  return judged;
}

int accept(const GateOptions& o, const Side& result, HistoryStore& store,
           const Environment& environment) {
  if (result.processes.size() > 1 || !result.cut.empty()) {
    throw InputError("--accept", "several results, or one that was cut", "give one whole result");
  }
  for (const std::string& line :
       accept_into_history(store, result.processes.front(), o.results.front(), o.accept, o.reason,
                           who_is_this(), seconds_now())) {
    environment.out << "accepted: " << line << '\n';
  }
  return exit_ok;
}

// Whether all that it is judged against is there; a line that says so where it is not. A history
// that is added to may begin now.
bool baselines_exist(const GateOptions& o, const Environment& environment) {
  std::vector<std::string> needed = o.baselines;
  if (!o.history.empty() && !o.add) needed.push_back(o.history);
  for (const std::string& file : needed) {
    if (::access(file.c_str(), F_OK) == 0) continue;
    if (errno != ENOENT) {
      throw InputError(file, std::strerror(errno), "name a file that can be read");
    }
    environment.err << "moegauge: " << file << ": no such baseline, so no verdict; record one with "
                    << (o.history.empty() ? "moegauge run --out" : "moegauge gate --history --add")
                    << '\n';
    return false;
  }
  return true;
}

void add_judged(const GateOptions& o, const Side& result, const std::set<std::string>& held,
                HistoryStore& store, const Environment& environment) {
  for (std::size_t i = 0; i < o.results.size(); ++i) {
    add_to_history(store, result.processes[i], o.results[i], {}, held,
                   o.outputs.beside(environment), environment.err);
  }
}

int show(const GateOptions& o, const Judgement& judgement, const ReportTitle& title,
         const Environment& environment) {
  if (o.outputs.json) {
    environment.out << strict_json(json_report(judgement, title)) << '\n';
  } else if (o.explain.empty()) {
    environment.out << text_report(judgement, title);
  }
  write_verdicts(o.outputs, judgement, title, environment);
  const int code = exit_code(judgement);
  if (o.explain.empty()) return code;
  if (print_explanations(judgement, o.explain, o.outputs.beside(environment))) return code;
  environment.err << "moegauge: --explain: no judged case matches " << o.explain << '\n';
  return code == exit_ok ? exit_no_verdict : code;
}

int gate(const GateOptions& o, const Environment& environment) {
  const fs::path root = find_root();
  const fs::path policy_file = find_policy(o.policy, root);
  require_sense(o, policy_file);
  const Policy policy = load_policy(policy_file);
  const Calibration calibration =
      o.calibration.empty() ? Calibration{} : load_calibration(o.calibration);
  Side result = load_side(o.results, environment);
  if (o.add && !result.cut.empty())
    throw InputError(result.cut, "a part of a run is none", "give the whole file");
  if (!baselines_exist(o, environment)) return exit_no_verdict;
  std::unique_ptr<HistoryStore> store;
  if (!o.history.empty()) {
    store = open_history_or_say(o.history, o.add ? HistoryAccess::create : HistoryAccess::existing,
                                environment);
    if (store == nullptr) return exit_no_verdict;
  }
  if (!o.accept.empty()) return accept(o, result, *store, environment);
  Judged judged = store != nullptr ? judge_history(o, policy, calibration, root, result, *store)
                                   : judge_files(o, policy, calibration, root, result, environment);
  apply_known_issues(judged.judgement, policy, today());
  const int code = show(o, judged.judgement,
                        {.result = result.title, .baseline = judged.baseline_title}, environment);
  if (o.add) add_judged(o, result, judged.held, *store, environment);
  return code;
}

}  // namespace

Action add_gate(CLI::App& subcommand) {
  auto options = std::make_shared<GateOptions>();
  declare_options(subcommand, *options);
  return [options](const Environment& environment) { return gate(*options, environment); };
}

}  // namespace moegauge
