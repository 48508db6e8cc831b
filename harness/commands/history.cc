#include "harness/commands/history.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/commands/history_add.h"
#include "harness/commands/history_options.h"
#include "harness/commands/options.h"
#include "harness/commands/results.h"
#include "harness/history/families.h"
#include "harness/history/trend.h"
#include "harness/history/utc.h"
#include "harness/json/cursor.h"
#include "harness/json/nearest.h"
#include "harness/judge/text_table.h"
#include "harness/result/result_io.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

struct HistoryOptions {
  std::string db;
  std::vector<std::string> results;
  std::string commit, commit_time;
  std::string case_id, device = "*";
  std::size_t last = 500, points = 20;
  double least_percent = 1;
  std::string from, to, map;
  bool json = false;
};

using Doing = int (*)(const HistoryOptions&, const Environment&);

GivenCommit given_commit(const HistoryOptions& o) {
  GivenCommit given{.commit = o.commit};
  if (o.commit_time.empty()) return given;
  given.time = utc_seconds(o.commit_time);
  if (given.time) return given;
  throw InputError("--commit-time", in_quotes(o.commit_time) + " is no time",
                   "2026-11-30T17:10:35+00:00, as git show -s --format=%cI writes it");
}

int add(const HistoryOptions& o, const Environment& environment) {
  const GivenCommit given = given_commit(o);
  const auto store = open_history_or_say(o.db, HistoryAccess::create, environment);
  if (store == nullptr) return exit_no_verdict;
  for (const std::string& file : o.results) {
    const LoadedResult loaded = load_result(file);
    if (loaded.truncated) {
      throw InputError(*loaded.truncated, "a part of a run is none", "give the whole file");
    }
    // One line for each, at once: what was reported done is on the disk.
    add_to_history(*store, loaded.result, file, given, {}, environment.out, environment.err);
  }
  return exit_ok;
}

std::string runs_table(const std::vector<HistoryRun>& runs, std::size_t shown) {
  TextTable table({Align::right, Align::left, Align::left, Align::left, Align::right, Align::right,
                   Align::left});
  table.add({"run", "time (UTC)", "commit", "measured", "ok", "cases", "suite"});
  const std::size_t first = runs.size() > shown ? runs.size() - shown : 0;
  for (std::size_t i = first; i < runs.size(); ++i) {
    const HistoryRun& run = runs[i];
    table.add({std::to_string(run.id), utc_text(run.time()),
               run.commit.empty() ? "-" : run.commit.substr(0, 10), utc_text(run.run_time),
               std::to_string(run.ok_cases), std::to_string(run.cases), run.suite});
  }
  std::string text = table.str();
  if (first > 0) {
    text += "the last " + std::to_string(shown) + " of " + std::to_string(runs.size()) +
            " runs; --points shows more\n";
  }
  return text;
}

// An anchor that someone set, and the one that it took the place of.
struct Accepted {
  HistoryAnchor now;
  std::string id, device;
  std::int64_t old_run = 0;  // 0: there was none
};

std::vector<Accepted> accepted_anchors(HistoryStore& store, const Families& families) {
  std::map<std::int64_t, CaseOnDevice> family_of;
  for (const auto& [key, family] : families) {
    for (const HistorySeries& one : family) family_of[one.id] = key;
  }
  std::map<CaseOnDevice, std::int64_t> before;
  std::vector<Accepted> list;
  for (HistoryAnchor& anchor : store.anchors()) {
    const CaseOnDevice& key = family_of[anchor.series];
    const std::int64_t old = std::exchange(before[key], anchor.run);
    if (anchor.reason == first_anchor_reason) continue;
    list.push_back({std::move(anchor), key.first, key.second, old});
  }
  return list;
}

Json show_json(const std::vector<HistoryRun>& runs, const Families& families,
               const std::vector<Accepted>& accepted, const std::vector<HistoryRename>& renames) {
  Json json = {{"runs", Json::array()},
               {"series", Json::array()},
               {"accepted", Json::array()},
               {"renames", Json::array()}};
  for (const HistoryRun& run : runs) {
    json["runs"].push_back({{"run", run.id},
                            {"time", utc_text(run.time())},
                            {"commit", run.commit},
                            {"measured", utc_text(run.run_time)},
                            {"suite", run.suite},
                            {"cases", run.cases},
                            {"ok", run.ok_cases},
                            {"content", run.content}});
  }
  for (const auto& [key, family] : families) {
    std::int64_t points = 0;
    for (const HistorySeries& one : family) points += one.points;
    json["series"].push_back({{"id", key.first}, {"device", key.second}, {"points", points}});
  }
  for (const Accepted& one : accepted) {
    json["accepted"].push_back({{"id", one.id},
                                {"device", one.device},
                                {"old_run", one.old_run},
                                {"new_run", one.now.run},
                                {"when", utc_text(one.now.set_at)},
                                {"who", one.now.who},
                                {"reason", one.now.reason}});
  }
  for (const HistoryRename& one : renames) {
    json["renames"].push_back(
        {{"from", one.from}, {"to", one.to}, {"when", utc_text(one.set_at)}, {"who", one.who}});
  }
  return json;
}

int show(const HistoryOptions& o, const Environment& environment) {
  const auto store = open_history_or_say(o.db, HistoryAccess::existing, environment);
  if (store == nullptr) return exit_no_verdict;
  const std::vector<HistoryRun> runs = store->runs();
  const std::vector<HistoryRename> renames = store->renames();
  const Families families = families_of(*store, CaseNames(renames));
  const std::vector<Accepted> accepted = accepted_anchors(*store, families);
  if (o.json) {
    environment.out << strict_json(show_json(runs, families, accepted, renames)) << '\n';
    return runs.empty() ? exit_no_verdict : exit_ok;
  }
  std::map<std::string, std::size_t> devices;
  std::set<std::string> names;
  for (const auto& [key, family] : families) {
    ++devices[key.second];
    names.insert(key.first);
  }
  environment.out << o.db << ": " << runs.size() << " runs, " << names.size() << " cases\n\n"
                  << runs_table(runs, o.points) << '\n';
  for (const auto& [device, count] : devices) {
    environment.out << count << " cases on " << device << '\n';
  }
  for (const Accepted& one : accepted) {
    environment.out << "accepted " << utc_text(one.now.set_at) << " by " << one.now.who << ": "
                    << one.id << " on " << one.device << ": anchor run " << one.old_run
                    << " -> run " << one.now.run << ": " << one.now.reason << '\n';
  }
  for (const HistoryRename& one : renames) {
    environment.out << "renamed " << utc_text(one.set_at) << " by " << one.who << ": " << one.from
                    << " -> " << one.to << '\n';
  }
  return runs.empty() ? exit_no_verdict : exit_ok;
}

std::vector<std::string> names_of(const Families& families) {
  std::vector<std::string> names;
  for (const auto& [key, family] : families) {
    if (names.empty() || names.back() != key.first) names.push_back(key.first);
  }
  return names;
}

int trend(const HistoryOptions& o, const Environment& environment) {
  const auto store = open_history_or_say(o.db, HistoryAccess::existing, environment);
  if (store == nullptr) return exit_no_verdict;
  const std::vector<HistoryRun> runs = store->runs();
  const TrendSettings settings{.last = o.last, .least_size = o.least_percent / 100};
  const std::vector<Trend> list = trends(*store, runs, o.case_id, o.device, settings);
  if (list.empty()) {
    const Families families = families_of(*store, CaseNames(store->renames()));
    environment.err << "moegauge: no case of " << o.db << " is " << in_quotes(o.case_id)
                    << (o.device == "*" ? "" : " on " + in_quotes(o.device)) << "; "
                    << suggestion(o.case_id, names_of(families)) << '\n';
    return exit_no_verdict;
  }
  Json json = Json::array();
  bool first = true, any_ok = false;
  for (const Trend& one : list) {
    any_ok = any_ok || std::ranges::any_of(one.points, &HistoryPoint::counts);
    if (o.json) {
      json.push_back(trend_json(one, runs));
    } else {
      environment.out << (first ? "" : "\n") << trend_text(one, runs, o.points);
    }
    first = false;
  }
  if (o.json) environment.out << strict_json(json) << '\n';
  return any_ok ? exit_ok : exit_no_verdict;
}

std::vector<HistoryRename> asked_renames(const HistoryOptions& o) {
  std::vector<HistoryRename> list;
  const auto one = [&](const std::string& from, const std::string& to) {
    list.push_back({.from = from, .to = to, .set_at = seconds_now(), .who = who_is_this()});
  };
  if (o.map.empty()) {
    if (o.to.empty()) throw InputError("history rename", "no names", "give OLD NEW, or --map FILE");
    one(o.from, o.to);
    return list;
  }
  const JsonDocument document = JsonDocument::read(o.map);
  for (const auto& [from, to] : JsonCursor(document).members()) one(from, to.text());
  if (list.empty()) throw InputError(o.map, "it renames nothing", R"({"OLD ID": "NEW ID", ...})");
  return list;
}

int rename(const HistoryOptions& o, const Environment& environment) {
  const std::vector<HistoryRename> asked = asked_renames(o);
  const auto store = open_history_or_say(o.db, HistoryAccess::existing, environment);
  if (store == nullptr) return exit_no_verdict;
  std::vector<std::string> known;
  for (const HistorySeries& one : store->series()) known.push_back(one.case_id);
  for (const HistoryRename& one : asked) {
    if (std::ranges::count(known, one.from) > 0) continue;
    throw InputError(one.from, "no case of " + o.db + " has this name",
                     suggestion(one.from, known));
  }
  store->rename(asked);
  for (const HistoryRename& one : asked) {
    environment.out << "renamed: " << one.from << " -> " << one.to << '\n';
  }
  return exit_ok;
}

CLI::App& action(CLI::App& history, HistoryOptions& o, Doing& doing, const char* name,
                 const char* description, Doing its) {
  CLI::App& app = *history.add_subcommand(name, description);
  app.add_option("--db", o.db, "The history, a SQLite file")->required()->type_name("FILE");
  app.callback([&doing, its] { doing = its; });
  return app;
}

void declare(CLI::App& app, HistoryOptions& o, Doing& doing) {
  app.require_subcommand(1);
  CLI::App& adding = action(app, o, doing, "add", "Keep the summaries of results", add);
  adding.add_option("RESULT", o.results, "Result files; one that is there already is left alone")
      ->required();
  adding.add_option("--commit", o.commit, "Of what was measured, where the result does not say");
  adding.add_option("--commit-time", o.commit_time,
                    "... and when it was made: 2026-11-30T17:10:35+00:00");
  CLI::App& showing =
      action(app, o, doing, "show", "Runs, devices, accepted changes, renames", show);
  CLI::App& trending =
      action(app, o, doing, "trend", "A case over its runs, and where its level changed", trend);
  trending.add_option("CASE", o.case_id, "Case id, or a glob")->required();
  trending.add_option("--device", o.device, "Only on devices whose key matches this glob");
  trending.add_option("--last", o.last, "Runs looked at, the newest [500]")
      ->check(CLI::Range(1, 1'000'000));
  trending.add_option("--least", o.least_percent, "Smallest change shown, in percent [1]")
      ->check(CLI::Range(0.0, 100.0));
  for (CLI::App* reading : {&showing, &trending}) {
    reading->add_option("--points", o.points, "Lines of the table, the newest runs [20]")
        ->check(CLI::Range(1, 1'000'000));
    add_json_flag(*reading, o.json, "text");
  }
  CLI::App& renaming =
      action(app, o, doing, "rename", "Let a case go on under another name", rename);
  renaming.add_option("OLD", o.from, "Its id in runs so far");
  renaming.add_option("NEW", o.to, "Its id from now on");
  renaming.add_option("--map", o.map, R"(Several at once: a JSON file {"OLD": "NEW", ...})")
      ->excludes("OLD");
  app.footer(
      "Exit codes: 0; 2 bad input, also a damaged history; 4 nothing matched or nothing is ok.\n\n"
      "  moegauge history add results/latest.json --db history.db\n"
      "  moegauge history trend 'fused_moe/qwen3-30b-a3b/fp8_block/*/M=1' --db history.db\n"
      "  moegauge gate now.json --history history.db");
}

}  // namespace

Action add_history(CLI::App& subcommand) {
  struct Kept {
    HistoryOptions options;
    Doing doing = nullptr;
  };
  auto kept = std::make_shared<Kept>();
  declare(subcommand, kept->options, kept->doing);
  return [kept](const Environment& environment) { return kept->doing(kept->options, environment); };
}

}  // namespace moegauge
