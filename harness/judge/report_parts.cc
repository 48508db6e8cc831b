#include "harness/judge/report_parts.h"

#include <algorithm>

#include "harness/judge/numbers.h"

namespace moegauge {

bool needs_person(Verdict verdict) {
  return verdict != Verdict::pass && verdict != Verdict::not_judged;
}

bool needs_person(const CaseVerdict& verdict) {
  return needs_person(verdict.verdict) || !verdict.changes.empty();
}

std::vector<const CaseVerdict*> worst_first(const Judgement& judgement) {
  std::vector<const CaseVerdict*> order;
  for (const CaseVerdict& verdict : judgement.cases) order.push_back(&verdict);
  const auto slowdown = [](const CaseVerdict& v) {
    if (v.number && v.number->relative)  // a rate that falls is a loss as a time that grows is
      return v.number->unit == "ms" ? 1 + v.number->change : 1 / (1 + v.number->change);
    return v.latency ? v.latency->ratio : 1.0;
  };
  std::stable_sort(order.begin(), order.end(), [&](const CaseVerdict* a, const CaseVerdict* b) {
    if (a->verdict != b->verdict) return a->verdict > b->verdict;
    return slowdown(*a) > slowdown(*b);
  });
  return order;
}

namespace {

LatencyCells number_cells(const NumberJudgement& j) {
  const auto value = [&j](double number, const std::optional<double>& error) {
    std::string text = format_plain(number);
    if (error) text += " ±" + format_error(*error);
    return j.unit.empty() ? text : text + " " + j.unit;
  };
  const auto change = [&j](double difference) {
    if (j.relative) return format_change(difference);
    return j.share ? format_points(difference) : format_plain(difference);
  };
  LatencyCells cells{.result = value(j.result, j.result_error),
                     .baseline = value(j.baseline, j.baseline_error),
                     .ratio = change(j.change)};
  if (j.low && j.high) cells.interval = "[" + change(*j.low) + ", " + change(*j.high) + "]";
  return cells;
}

}  // namespace

LatencyCells latency_cells(const CaseVerdict& verdict) {
  if (verdict.number) return number_cells(*verdict.number);
  if (!verdict.latency) return {};
  const LatencyJudgement& j = *verdict.latency;
  return {.result = format_us(j.result_us),
          .baseline = format_us(j.baseline_us),
          .ratio = format_ratio(j.ratio),
          .interval = format_interval(j.low, j.high)};
}

std::string number_outcome(const CaseVerdict& verdict) {
  if (!verdict.number || verdict.verdict == Verdict::inconclusive)
    return std::string(to_string(verdict.verdict));
  const NumberJudgement& j = *verdict.number;
  if (!j.relative) {
    if (verdict.verdict == Verdict::improved) return "better";
    return verdict.verdict == Verdict::fail ? "worse" : "not worse";
  }
  const double gain = j.unit == "ms" ? -j.change : j.change;
  if (gain > j.limit) return "better";
  return gain < -j.limit ? "worse" : "same";
}

}  // namespace moegauge
