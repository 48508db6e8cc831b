#include "harness/endtoend/judge_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>

#include "harness/endtoend/points.h"
#include "harness/endtoend/row_verdicts.h"
#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

CaseVerdict no_verdict(const std::string& id, const std::string& sentence) {
  CaseVerdict verdict{.id = id, .findings = {{Verdict::no_verdict, "baseline", sentence}}};
  settle(verdict);
  return verdict;
}

// Two rows of one point in one file are no two runs: nobody said which is meant.
std::string ambiguous(const EndToEndPoint& point, const std::string& side) {
  if (point.variants.empty()) return "";
  std::string names;
  for (const std::string& variant : point.variants)
    names += (names.empty() ? "" : ", ") + (variant.empty() ? "(none)" : variant);
  return side + " holds several variants of it (" + names + "): choose one with ingest --variant";
}

// Points by all but their model, so that a point that only its model's name sets apart is found.
using ByWork = std::map<std::string, std::string>;  // the model

std::string all_but_model(const EndToEndRow& row) {
  return EndToEndRow{.op = row.op, .labels = row.labels}.point();
}

ByWork by_work(const EndToEndSide& side) {
  ByWork models;
  for (const EndToEndPoint& point : side.points)
    models.emplace(all_but_model(point.row()), point.row().model);
  return models;
}

// A point without counterpart, and one of the other side that only the model's name tells apart.
std::string missing(const EndToEndPoint& point, const ByWork& other, const std::string& where) {
  const auto found = other.find(all_but_model(point.row()));
  if (found == other.end() || found->second == point.row().model) return where;
  return where + "; it has the same of the model " + found->second + ": ingest one with --model";
}

std::string ratio_text(double ratio) {
  std::string text(16, '\0');
  text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.3f", ratio)));
  return text;
}

// What means over all lengths and loads say of a number. They can contradict each other, and what
// decides is each point.
std::vector<std::string> notes_on_means(const std::vector<CaseVerdict>& verdicts,
                                        const EndToEndSide& side) {
  struct Means {
    std::size_t points = 0;
    double now = 0, then = 0, logs = 0;
  };
  std::map<std::pair<std::string, std::string>, Means> all;  // by model and number
  for (const CaseVerdict& verdict : verdicts) {
    if (!verdict.number || !verdict.number->relative) continue;
    const NumberJudgement& j = *verdict.number;
    const EndToEndPoint* point =
        side.find(verdict.id.substr(0, verdict.id.size() - j.name.size() - 1));
    Means& means = all[{point->row().model, j.name}];
    ++means.points;
    means.now += j.result;
    means.then += j.baseline;
    means.logs += std::log(j.result / j.baseline);
  }
  std::vector<std::string> notes;
  for (const auto& [key, means] : all) {
    if (means.points < 2) continue;
    const double ratio = std::exp(means.logs / static_cast<double>(means.points));
    notes.push_back((key.first.empty() ? "" : key.first + " ") + key.second + " over " +
                    std::to_string(means.points) + " points: arithmetic mean " +
                    format_change(means.now / means.then - 1) + ", geometric mean ratio " +
                    ratio_text(ratio) + " (shown, never judged)");
  }
  return notes;
}

}  // namespace

void judge_end_to_end(std::span<const Result> results, std::span<const Result> baselines,
                      const Policy& policy, const std::string& filter, Judgement& judgement) {
  const EndToEndSide now = side_of(results), then = side_of(baselines);
  const auto suspects_now = suspects_of(now), suspects_then = suspects_of(then);
  const ByWork works_now = by_work(now), works_then = by_work(then);
  std::vector<CaseVerdict> verdicts;
  const auto add = [&](CaseVerdict verdict) {
    if (matches_glob(filter, verdict.id)) verdicts.push_back(std::move(verdict));
  };
  for (const EndToEndPoint& point : now.points) {
    const EndToEndPoint* was = then.find(point.id);
    std::string why = ambiguous(point, "the result");
    if (why.empty() && was == nullptr)
      why = missing(point, works_then, "the baseline has no such point: record one with it");
    if (why.empty()) why = ambiguous(*was, "the baseline");
    if (!why.empty()) {
      add(no_verdict(point.id, why));
    } else if (point.row().op == "eval") {
      add(judge_accuracy(point, *was, policy));
    } else {
      for (CaseVerdict& verdict : judge_serving({point, *was, suspects_now, suspects_then}, policy))
        add(std::move(verdict));
    }
  }
  for (const EndToEndPoint& point : then.points) {
    if (now.find(point.id) != nullptr) continue;
    add(no_verdict(point.id, missing(point, works_now,
                                     "in the baseline, absent from the result: measure it, narrow "
                                     "--filter, or record a new baseline without it")));
  }
  for (std::string& note : notes_on_means(verdicts, now))
    judgement.means.push_back(std::move(note));
  std::ranges::move(verdicts, std::back_inserter(judgement.cases));
}

}  // namespace moegauge
