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
  const auto slowdown = [](const CaseVerdict& v) { return v.latency ? v.latency->ratio : 1.0; };
  std::stable_sort(order.begin(), order.end(), [&](const CaseVerdict* a, const CaseVerdict* b) {
    if (a->verdict != b->verdict) return a->verdict > b->verdict;
    return slowdown(*a) > slowdown(*b);
  });
  return order;
}

LatencyCells latency_cells(const CaseVerdict& verdict) {
  if (!verdict.latency) return {};
  const LatencyJudgement& j = *verdict.latency;
  return {.result = format_us(j.result_us),
          .baseline = format_us(j.baseline_us),
          .ratio = format_ratio(j.ratio),
          .interval = format_interval(j.low, j.high)};
}

}  // namespace moegauge
