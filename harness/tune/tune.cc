#include "harness/tune/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "harness/result/safe_file.h"
#include "harness/tune/bench.h"
#include "harness/tune/table_file.h"

namespace moegauge {
namespace {

using Clock = std::chrono::steady_clock;

// Of the budget; the rest is for the final run.
constexpr double kSearchShare = 0.75;

class Tuning {
 public:
  Tuning(const TuneSetup& setup, const std::vector<KeyPlan>& plans, const RunnerHooks& hooks,
         TuneJournal* journal)
      : setup_(setup), plans_(plans), hooks_(hooks), journal_(journal) {}

  TuneOutcome run() {
    search();
    write();
    std::vector<std::int64_t> wanted;  // keys first, should the time not suffice
    for (const KeyDecision& d : outcome_.decisions) {
      if (has_entry(d)) wanted.push_back(d.tokens);
    }
    if (setup_.check_between && !outcome_.table.entries.empty()) {
      outcome_.between = between_keys(
          outcome_.table, outcome_.decisions,
          [this](std::int64_t tokens) { return standard_at(tokens); }, whole());
      wanted.insert(wanted.end(), outcome_.between.begin(), outcome_.between.end());
    }
    read_back(wanted, "read back");
    const std::set<std::int64_t> corrected = correct();
    if (!corrected.empty()) {
      write();
      // Of what was taken back there may be no entry any more.
      std::vector<std::int64_t> again;
      for (const KeyDecision& d : outcome_.decisions) {
        if (corrected.contains(d.tokens) && has_entry(d)) again.push_back(d.tokens);
      }
      if (!outcome_.table.entries.empty()) read_back(again, "read back corrected");
    }
    prove();
    publish();
    return std::move(outcome_);
  }

 private:
  bool has_entry(const KeyDecision& d) const {
    return d.verdict == KeyVerdict::added || d.verdict == KeyVerdict::changed ||
           d.verdict == KeyVerdict::kept;
  }

  Problem problem_at(std::int64_t tokens) const {
    Problem problem = setup_.problem;
    problem.tokens = tokens;
    return problem;
  }
  Config standard_at(std::int64_t tokens) const {
    return setup_.backend->default_config(problem_at(tokens));
  }
  WholeConfig whole() const {
    return [this](const Config& config, std::int64_t tokens) {
      return whole_config(*setup_.backend, problem_at(tokens), config);
    };
  }
  // The default in the keys that a file has: those of the first plan that has any.
  Config standard_entry(std::int64_t tokens) const {
    const Config standard = standard_at(tokens);
    Config entry;
    for (const KeyPlan& plan : plans_) {
      for (const auto& [key, value] : plan.standard.values) {
        const auto found = standard.values.find(key);
        if (found != standard.values.end()) entry.values[key] = found->second;
      }
    }
    return entry;
  }

  double seconds_left() const {
    return setup_.runner.budget_seconds -
           std::chrono::duration<double>(Clock::now() - start_).count();
  }

  void search() {
    RunnerSettings settings = setup_.runner;
    settings.budget_seconds *= kSearchShare;
    TuneBench bench(search_cases(setup_.asked, plans_), settings, hooks_, journal_);
    const Laboratory laboratory = {
        .measure = [&](const TuneRequest& request) { return bench.measure(request); },
        .seconds = [&] { return bench.seconds(); }};
    for (const KeyPlan& plan : plans_) {
      if (!bench.stop_reason()) bench.compile_ahead(plan);
      const KeyFindings findings = search_key(plan, setup_.search, laboratory);
      outcome_.decisions.push_back(decide(plan, findings, setup_.min_win));
      outcome_.tried += findings.tried;
      outcome_.untried += findings.untried;
      for (const CaseRecord& record : findings.dropped) outcome_.dropped.push_back(record);
      if (!findings.complete) outcome_.ended = bench.stop_reason().value_or("");
      setup_.key_done(plan);
    }
  }

  // The table of the present decisions, into the file; a table without entries is none.
  void write() {
    ConfigTable table = merged(setup_.base, outcome_.decisions, whole());
    const bool any = std::ranges::any_of(outcome_.decisions, [](const KeyDecision& d) {
      return d.verdict == KeyVerdict::added || d.verdict == KeyVerdict::changed;
    });
    table.file = setup_.out;
    // Entries of a base that all stayed are not of this run.
    if (any) {
      const auto ours = table_metadata(setup_.problem, *setup_.backend, setup_.metadata);
      for (const auto& [key, value] : ours) table.metadata[key] = value;
    }
    if (!any && setup_.base.entries.empty()) table.entries.clear();
    outcome_.table = std::move(table);
    std::error_code ignored;
    if (outcome_.table.entries.empty()) {
      std::filesystem::remove(setup_.draft, ignored);  // of before the final run
    } else {
      replace_file(setup_.draft, table_text(outcome_.table));
    }
  }

  void publish() {
    if (outcome_.table.entries.empty()) return;
    std::error_code ignored;
    // What was not read back replaces nothing: the journal goes on from the file that is there.
    outcome_.held_back = !outcome_.ended.empty() && !outcome_.unproven.empty() &&
                         std::filesystem::exists(setup_.out, ignored);
    if (outcome_.held_back) return;
    replace_file(setup_.out, table_text(outcome_.table));
    std::filesystem::remove(setup_.draft, ignored);
    for (auto& [tokens, pair] : outcome_.read_back) {
      if (pair.tuned.config.file == setup_.draft) pair.tuned.config.file = setup_.out;
      pair.tuned.coordinates.config = "file:" + setup_.out.string();
    }
  }

  void read_back(const std::vector<std::int64_t>& tokens, const std::string& tag) {
    std::vector<CaseCoordinates> cases;
    for (const std::int64_t m : tokens) {
      for (const std::string& config : {std::string("default"), "file:" + setup_.draft.string()}) {
        cases.push_back(setup_.asked);
        cases.back().tokens = m;
        cases.back().config = config;
      }
    }
    if (cases.empty()) return;
    RunnerSettings settings = setup_.runner;
    ++settings.measure.seed;  // other weights, other inputs
    if (std::isfinite(settings.budget_seconds)) {
      settings.budget_seconds = std::max(seconds_left(), 0.0);
    }
    auto records = run_journaled(cases, tag, settings, hooks_, journal_);
    for (std::size_t i = 0; i + 1 < records.size(); i += 2) {
      for (const CaseRecord* record : {&records[i], &records[i + 1]}) {
        if (record->status() != Status::skipped || !outcome_.ended.empty()) continue;
        outcome_.ended = std::get<Unmeasured>(record->outcome).reason;
      }
      const std::int64_t m = records[i].coordinates.tokens;
      outcome_.read_back[m] = {std::move(records[i]), std::move(records[i + 1])};
    }
  }

  // What the final run shows to be no win is taken back, and where lookup between keys loses, a key
  // is added. Returns the batch sizes whose lookup is another now.
  std::set<std::int64_t> correct() {
    std::set<std::int64_t> corrected;
    for (KeyDecision& d : outcome_.decisions) {
      const bool ours = d.verdict == KeyVerdict::added || d.verdict == KeyVerdict::changed;
      if (!ours || !take_back(d)) continue;
      corrected.insert(d.tokens);
    }
    for (const std::int64_t m : outcome_.between) {
      const auto pair = outcome_.read_back.find(m);
      if (pair == outcome_.read_back.end()) continue;
      const auto& [standard, tuned] = pair->second;
      const bool failed = standard.measured() != nullptr && tuned.measured() == nullptr &&
                          tuned.status() != Status::skipped;
      if (!failed && !wins(standard, tuned, setup_.min_win)) continue;
      outcome_.decisions.push_back({.tokens = m,
                                    .verdict = KeyVerdict::added,
                                    .config = standard_entry(m),
                                    .hash = standard.config.hash,
                                    .reason = "between keys: there the entry of M = " +
                                              std::to_string(choose(outcome_.table, m).key) +
                                              (failed ? " fails" : " loses to the default")});
      corrected.insert(m);
    }
    std::ranges::stable_sort(outcome_.decisions, {}, &KeyDecision::tokens);
    return corrected;
  }

  // True where the entry was taken back.
  bool take_back(KeyDecision& d) {
    const auto pair = outcome_.read_back.find(d.tokens);
    if (pair == outcome_.read_back.end()) return false;
    const auto& [standard, tuned] = pair->second;
    if (standard.measured() == nullptr || tuned.status() == Status::skipped) return false;
    const bool failed = tuned.measured() == nullptr;
    // In doubt the default; but what won over an incumbent gives way to nothing less than a win.
    const double enough = d.fallback_is_default ? 0 : setup_.min_win;
    if (!failed && !wins(standard, tuned, enough)) return false;
    const WholeConfig resolved = whole();
    // What is in there already, or what the very same kernel's noise was taken for.
    if (resolved(d.config, d.tokens) == resolved(d.fallback, d.tokens)) return false;
    const auto plan = std::ranges::find(plans_, d.tokens, &KeyPlan::tokens);
    d.reason = failed ? "taken back: in the final run the candidate is " +
                            std::string(to_string(tuned.status()))
                      : "taken back: in the final run the default wins";
    d.config = d.fallback;
    d.hash = d.fallback_is_default ? standard.config.hash : "";
    // The default in place of an entry of --base is a change of that entry.
    const bool as_before = !plan->in_base || !d.fallback_is_default || !plan->incumbent;
    if (as_before) d.verdict = plan->in_base ? KeyVerdict::kept : KeyVerdict::left;
    return true;
  }

  // Every entry of ours must have been read by the run path under its key, and have run as the
  // kernel that was decided on.
  void prove() {
    for (const KeyDecision& d : outcome_.decisions) {
      if (!has_entry(d)) continue;
      const auto complain = [&](const std::string& what) {
        outcome_.unproven.push_back("M = " + std::to_string(d.tokens) + ": " + what);
      };
      const auto pair = outcome_.read_back.find(d.tokens);
      if (pair == outcome_.read_back.end()) {
        complain("not read back");
        continue;
      }
      const CaseRecord& tuned = pair->second.tuned;
      if (const auto* unmeasured = std::get_if<Unmeasured>(&tuned.outcome)) {
        complain("not read back: " + std::string(to_string(unmeasured->status)) + ", " +
                 unmeasured->reason);
      } else if (tuned.config.key != d.tokens) {
        complain("lookup used another entry");
      } else if (!d.hash.empty() && tuned.config.hash != d.hash) {
        complain("another kernel ran: " + tuned.config.hash + " instead of " + d.hash);
      }
    }
  }

  const TuneSetup& setup_;
  const std::vector<KeyPlan>& plans_;
  const RunnerHooks& hooks_;
  TuneJournal* const journal_;
  const Clock::time_point start_ = Clock::now();
  TuneOutcome outcome_;
};

}  // namespace

std::vector<KeyPlan> plan_keys(const TuneSetup& setup) {
  std::vector<KeyPlan> plans;
  for (const std::int64_t tokens : setup.tokens) {
    Problem problem = setup.problem;
    problem.tokens = tokens;
    plans.push_back(plan_key(*setup.backend, problem,
                             setup.base.entries.empty() ? nullptr : &setup.base,
                             setup.max_candidates));
  }
  return plans;
}

TuneOutcome tune(const TuneSetup& setup, const std::vector<KeyPlan>& plans,
                 const RunnerHooks& hooks, TuneJournal* journal) {
  return Tuning(setup, plans, hooks, journal).run();
}

std::size_t records_at_most(const std::vector<KeyPlan>& plans, const SearchSettings& settings) {
  std::size_t records = 0;
  for (const KeyPlan& plan : plans) records += records_at_most(plan, settings) + 2;
  return records;
}

}  // namespace moegauge
