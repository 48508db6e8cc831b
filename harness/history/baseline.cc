#include "harness/history/baseline.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "harness/history/families.h"
#include "harness/history/utc.h"
#include "harness/judge/findings.h"
#include "harness/judge/statistics.h"
#include "harness/statistics/robust.h"
#include "harness/suite/select.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// Runs that the spread is taken from, beside those of the baseline.
constexpr std::size_t runs_for_spread = 40;
// How far back runs are looked for: those that are not ok count for nothing.
constexpr std::size_t runs_looked_at = 80;

std::pair<std::int64_t, std::int64_t> place(const HistoryPoint& p) { return {p.time, p.run}; }

// Half the variance of differences of neighbours, each run in one of them (J. von Neumann, Ann.
// Math. Stat. 12 (1941) 367-395, of disjoint pairs, so that the degrees of freedom are known).
Variance variance_of_neighbours(const std::vector<HistoryPoint>& points) {
  std::vector<double> differences;
  for (std::size_t i = 1; i < points.size(); i += 2) {
    differences.push_back(std::log(points[i].centre / points[i - 1].centre));
  }
  if (differences.size() < 2) return {};
  Variance variance = robust_location(differences).variance;
  variance.value /= 2;
  return variance;
}

std::vector<double> logs_of(const std::vector<HistoryPoint>& points) {
  std::vector<double> logs;
  logs.reserve(points.size());
  for (const HistoryPoint& point : points) logs.push_back(std::log(point.centre));
  return logs;
}

std::string runs_text(const std::vector<HistoryPoint>& points) {
  const std::string last = std::to_string(points.back().run);
  if (points.size() == 1) return "run " + last;
  return "the last " + std::to_string(points.size()) + " ok runs (" +
         std::to_string(points.front().run) + " to " + last + ")";
}

double middle_of(const std::vector<HistoryPoint>& points, double ErrorSummary::*error) {
  std::vector<double> values;
  values.reserve(points.size());
  for (const HistoryPoint& point : points) values.push_back(point.errors.*error);
  return median(values);
}

class Gatherer {
 public:
  Gatherer(HistoryStore& store, const std::vector<Result>& results, const Calibration& calibration,
           const HistoryBaselineSettings& settings)
      : store_(store),
        results_(results),
        settings_(settings),
        names_(store.renames()),
        families_(families_of(store, names_)),
        anchors_(anchors_of(store, families_)),
        now_(gather(results, {}, calibration)) {
    for (const Result& result : results) {
      if (const auto run = store.run_of(content_of(result))) {
        own_runs_.insert(*run);
      }
    }
  }

  HistoryBaseline operator()() {
    for (const Result& result : results_) {
      for (const CaseRecord& record : result.cases) add_case(record, result);
    }
    add_vanished();
    return std::move(baseline_);
  }

 private:
  void add_case(const CaseRecord& record, const Result& result) {
    const std::string id = record.id();
    if (!matches_glob(settings_.filter, id)) return;
    const CaseOnDevice key(names_.newest(id), history_device_key(record.device, result));
    devices_.insert(key.second);
    if (!seen_.insert(key.first).second) return;
    const auto family = families_.find(key);
    if (family == families_.end()) {
      if (record.measured() == nullptr && was_ok_elsewhere(record, key.first)) return;
      baseline_.unknown[id] = "the history has no run of it on " + key.second +
                              ": add results of it with moegauge history add";
      return;
    }
    const auto anchor = anchors_.find(key);
    std::vector<HistoryPoint> points = points_of(store_, family->second, runs_looked_at);
    std::erase_if(points, [&](const HistoryPoint& p) {
      // What somebody accepted serves again.
      const bool accepted = anchor != anchors_.end() && p.run == anchor->second.run;
      return !(accepted ? p.counts() : p.serves()) || own_runs_.contains(p.run);
    });
    const std::string config = config_hash(record.config);
    const bool any_such =
        std::ranges::any_of(points, [&](const HistoryPoint& p) { return p.config == config; });
    if (any_such) std::erase_if(points, [&](const HistoryPoint& p) { return p.config != config; });

    std::vector<HistoryPoint> rolling = points;
    if (anchor != anchors_.end()) {
      const std::pair from(anchor->second.time, anchor->second.run);
      std::erase_if(rolling, [&](const HistoryPoint& p) { return place(p) < from; });
    }
    keep_last(rolling, settings_.last);
    if (rolling.empty()) {
      baseline_.unknown[id] = "the history has no other ok run of it on " + key.second +
                              (anchor == anchors_.end() ? "" : " since its anchor was set") +
                              ": add more with moegauge history add";
    } else {
      add_side(baseline_.rolling, record, rolling, known_spread(id, points, rolling.size()),
               runs_text(rolling) + (any_such ? "" : ", of another config"));
    }
    if (anchor == anchors_.end() || own_runs_.contains(anchor->second.run)) return;
    std::vector<HistoryPoint> first =
        anchor_points(store_, family->second, anchor->second, settings_.last);
    std::erase_if(first, [&](const HistoryPoint& p) { return own_runs_.contains(p.run); });
    if (first.empty()) return;
    const HistoryPoint anchored = first.front();
    std::ranges::reverse(first);  // the anchor itself gives the record
    add_side(baseline_.anchor, record, first, known_spread(id, points, 0),
             "the anchor, run " + std::to_string(anchored.run) + " of " + utc_date(anchored.time) +
                 (first.size() == 1
                      ? ""
                      : " with " + std::to_string(first.size() - 1) + " more of its kernel"));
  }

  // A case that could not run has no device: where the runs before it had one, it is missing now.
  bool was_ok_elsewhere(const CaseRecord& record, const std::string& name) {
    std::optional<HistoryPoint> newest;
    for (auto at = families_.lower_bound({name, ""}); at != families_.end(); ++at) {
      if (at->first.first != name) break;
      const std::vector<HistoryPoint> points = points_of(store_, at->second, own_runs_.size() + 1);
      for (const HistoryPoint& point : points) {
        const bool newer = !newest || place(*newest) < place(point);
        if (point.counts() && newer && !own_runs_.contains(point.run)) newest = point;
      }
    }
    if (newest) baseline_.rolling.result.cases.push_back(record_of({*newest}, record.coordinates));
    return newest.has_value();
  }

  static void keep_last(std::vector<HistoryPoint>& points, std::size_t most) {
    if (points.size() <= most) return;
    points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(most));
  }

  // A calibration where there is one; else of runs before the newest `but`, which show theirs
  // themselves.
  CaseEvidence known_spread(const std::string& id, std::vector<HistoryPoint> points,
                            std::size_t but) const {
    const auto found = now_.find(id);
    CaseEvidence evidence = found == now_.end() ? CaseEvidence{} : found->second;
    if (evidence.known.degrees_of_freedom > 0) return evidence;
    points.resize(points.size() - std::min(but, points.size()));
    keep_last(points, runs_for_spread);
    evidence.known = variance_of_neighbours(points);
    if (evidence.known.degrees_of_freedom > 0) {
      evidence.known_from = std::to_string(points.size()) + " runs of the history";
    }
    return evidence;
  }

  void add_side(HistorySide& side, const CaseRecord& record,
                const std::vector<HistoryPoint>& points, CaseEvidence evidence,
                const std::string& runs) {
    const std::string id = record.id();
    side.result.cases.push_back(record_of(points, record.coordinates));
    side.runs[id] = runs;
    evidence.baseline = logs_of(points);
    evidence.own_from = "the baseline's runs";
    side.evidence[id] = std::move(evidence);
  }

  // The newest of the points, with the errors that most of them had.
  CaseRecord record_of(const std::vector<HistoryPoint>& points,
                       const std::optional<CaseCoordinates>& coordinates) {
    HistoryPoint point = points.back();
    for (double ErrorSummary::*error :
         {&ErrorSummary::implementation, &ErrorSummary::quantization, &ErrorSummary::total,
          &ErrorSummary::worst_implementation, &ErrorSummary::worst_quantization,
          &ErrorSummary::worst_total}) {
      point.errors.*error = middle_of(points, error);
    }
    auto variant = variants_.find(point.variant);
    if (variant == variants_.end()) {
      variant = variants_.emplace(point.variant, read_variant(store_.variant(point.variant))).first;
    }
    CaseRecord record = record_from(point, variant->second);
    if (coordinates) record.coordinates = *coordinates;  // it may have been renamed
    return record;
  }

  void add_vanished() {
    std::set<std::string> suites;
    for (const Result& result : results_) suites.insert(context_value(result, "suite"));
    // Of the last of them and not the newest alone: missing for two nights is no better than for
    // one.
    std::set<std::int64_t> recent;
    const std::vector<HistoryRun> runs = store_.runs();
    for (auto run = runs.rbegin(); run != runs.rend() && recent.size() < settings_.last; ++run) {
      if (suites.contains(run->suite) && !own_runs_.contains(run->id)) recent.insert(run->id);
    }
    for (const auto& [key, family] : families_) {
      if (seen_.contains(key.first) || !devices_.contains(key.second)) continue;
      if (!matches_glob(settings_.filter, key.first)) continue;
      std::vector<HistoryPoint> points = points_of(store_, family, own_runs_.size() + 1);
      std::erase_if(points, [&](const HistoryPoint& p) { return own_runs_.contains(p.run); });
      if (points.empty() || !points.back().counts()) continue;
      if (!recent.contains(points.back().run)) continue;
      points.erase(points.begin(), points.end() - 1);
      baseline_.rolling.result.cases.push_back(record_of(points, std::nullopt));
    }
  }

  HistoryStore& store_;
  const std::vector<Result>& results_;
  const HistoryBaselineSettings& settings_;
  CaseNames names_;
  Families families_;
  std::map<CaseOnDevice, HistoryAnchor> anchors_;
  Evidence now_;
  std::set<std::int64_t> own_runs_;
  std::set<std::string> seen_, devices_;
  std::map<std::int64_t, CaseRecord> variants_;
  HistoryBaseline baseline_;
};

void name_runs(CaseVerdict& verdict, const std::string& runs, const std::string& how_to_accept) {
  for (Finding& finding : verdict.findings) {
    if (!finding.of_baseline) continue;
    finding.facts = "against " + runs + ": " + finding.facts;
    // What a policy of controls advises stays.
    if (finding.advice.find("new baseline") == std::string::npos) continue;
    finding.advice = finding.verdict == Verdict::fail
                         ? "find the cause, or, if it is meant, " + how_to_accept
                         : "so that the gain is kept, " + how_to_accept;
  }
}

void add_anchor(CaseVerdict& verdict, CaseVerdict anchored) {
  bool slower = false;
  const bool fails_already = std::ranges::any_of(verdict.findings, [](const Finding& f) {
    return f.verdict == Verdict::fail && f.subject == "latency";
  });
  for (Finding& finding : anchored.findings) {
    if (!finding.of_baseline) continue;
    if (finding.verdict != Verdict::fail) finding.verdict = Verdict::pass;
    slower |= finding.verdict == Verdict::fail && finding.subject == "latency";
    verdict.findings.push_back(std::move(finding));
  }
  // The table shows the ratio that failed.
  if (slower && !fails_already) verdict.latency = anchored.latency;
}

}  // namespace

HistoryBaseline history_baseline(HistoryStore& store, const std::vector<Result>& results,
                                 const Calibration& calibration,
                                 const HistoryBaselineSettings& settings) {
  return Gatherer(store, results, calibration, settings)();
}

Judgement judge_against(const HistoryBaseline& baseline, const Judgement& against_rolling,
                        const Judgement& against_anchor, const std::string& how_to_accept) {
  std::map<std::string, const CaseVerdict*> anchored;
  for (const CaseVerdict& verdict : against_anchor.cases) anchored[verdict.id] = &verdict;
  Judgement judgement = against_rolling;
  for (CaseVerdict& verdict : judgement.cases) {
    const auto last = baseline.rolling.runs.find(verdict.id);
    if (last != baseline.rolling.runs.end()) name_runs(verdict, last->second, how_to_accept);
    const auto unknown = baseline.unknown.find(verdict.id);
    for (Finding& finding : verdict.findings) {
      if (finding.subject == "baseline" && unknown != baseline.unknown.end())
        finding.facts = unknown->second;
    }
    const auto other = anchored.find(verdict.id);
    const auto anchor = baseline.anchor.runs.find(verdict.id);
    if (other != anchored.end() && anchor != baseline.anchor.runs.end()) {
      CaseVerdict its = *other->second;
      name_runs(its, anchor->second, how_to_accept);
      add_anchor(verdict, std::move(its));
    }
    settle(verdict);
  }
  return judgement;
}

std::set<std::string> to_hold_back(const Judgement& judgement, const HistoryBaseline& baseline) {
  std::set<std::string> ids;
  for (const CaseVerdict& verdict : judgement.cases) {
    const bool not_comparable =
        verdict.verdict == Verdict::no_verdict && !baseline.unknown.contains(verdict.id);
    if (verdict.verdict == Verdict::fail || not_comparable) ids.insert(verdict.id);
  }
  return ids;
}

std::vector<std::string> accept_into_history(HistoryStore& store, const Result& result,
                                             const std::string& where, const std::string& cases,
                                             const std::string& reason, const std::string& who,
                                             std::int64_t now) {
  const RunSummary summary = summarise(result, {}, where);
  const auto run = store.run_of(summary.run.content);
  if (!run) {
    throw InputError(where, "the history does not hold it", "moegauge history add it first");
  }
  const CaseNames names(store.renames());
  const Families families = families_of(store, names);
  const auto anchors = anchors_of(store, families);
  std::vector<HistoryAnchor> moved;
  std::vector<std::string> lines;
  for (const CaseSummary& one : summary.cases) {
    if (one.id != cases && !matches_glob(cases, one.id)) continue;
    if (!one.point.counts()) {
      throw InputError(one.id, "it is not ok in " + where, "only what is ok can be accepted");
    }
    const CaseOnDevice key(names.newest(one.id), one.device);
    const auto family = families.find(key);
    if (family == families.end()) throw InputError(one.id, "the history lost it", "add it again");
    const auto series = std::ranges::find(family->second, one.id, &HistorySeries::case_id);
    if (series == family->second.end())
      throw InputError(one.id, "the history lost it", "add it again");
    const auto in_run = [&](const HistoryPoint& p) { return p.run == *run; };
    const std::vector<HistoryPoint> points =
        store.points(*series, static_cast<std::size_t>(series->points));
    const auto point = std::ranges::find_if(points, in_run);
    if (point == points.end()) throw InputError(one.id, "the history lost it", "add it again");
    const auto anchor = anchors.find(key);
    const std::string old =
        anchor == anchors.end() ? "none" : "run " + std::to_string(anchor->second.run);
    lines.push_back(one.id + " on " + one.device + ": anchor " + old + " -> run " +
                    std::to_string(*run));
    moved.push_back({.series = series->id,
                     .run = *run,
                     .time = point->time,
                     .set_at = now,
                     .who = who,
                     .reason = reason});
  }
  if (moved.empty()) {
    throw InputError("--accept " + cases, "no case of " + where + " has this id",
                     "give the id, or a glob, of cases that it holds");
  }
  store.set_anchors(moved);
  return lines;
}

}  // namespace moegauge
