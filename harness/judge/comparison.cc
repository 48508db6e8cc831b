#include "harness/judge/comparison.h"

#include <cmath>
#include <map>
#include <stdexcept>

#include "harness/judge/counterpart.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

std::optional<double> median_us(const CaseRecord& record) {
  const Measured* measured = record.measured();
  return measured ? std::optional(measured->latency.median) : std::nullopt;
}

std::string joined(const std::vector<std::string>& phrases) {
  std::string text;
  for (const std::string& phrase : phrases) {
    if (!phrase.empty()) text += (text.empty() ? "" : "; ") + phrase;
  }
  return text;
}

ComparedCase one_sided(const CaseRecord& record, bool in_a) {
  ComparedCase row{.id = record.id(),
                   .point = point_id(record.coordinates),
                   .tokens = record.coordinates.tokens};
  (in_a ? row.a_us : row.b_us) = median_us(record);
  row.note = in_a ? "only in A" : "only in B";
  return row;
}

// Why one or both have no latency.
std::string not_ok(const CaseRecord& a, const CaseRecord& b) {
  const std::string in_a = why_not_ok(a), in_b = why_not_ok(b);
  if (in_a == in_b) return in_a + " in both";
  return joined({in_a.empty() ? "" : "A: " + in_a, in_b.empty() ? "" : "B: " + in_b});
}

ComparedCase compare_case(const CaseRecord& a, const CaseRecord& b, const Policy& policy) {
  ComparedCase row{.id = a.id(),
                   .point = point_id(a.coordinates),
                   .tokens = a.coordinates.tokens,
                   .a_us = median_us(a),
                   .b_us = median_us(b)};
  if (!a.measured() || !b.measured()) {
    row.note = not_ok(a, b);
    return row;
  }
  if (const auto differs = mismatch(b, a)) {
    row.note = "other " + differs->what + ": " + differs->then + " in A, " + differs->now + " in B";
    return row;
  }
  row.note = joined(changes(b, a));
  const auto log_a = log_latency(a.measured()->latency);
  const auto log_b = log_latency(b.measured()->latency);
  if (!log_a || !log_b) {
    row.note = std::string(log_a ? "B" : "A") + " holds fewer than " +
               std::to_string(least_rounds) + " usable rounds of samples";
    return row;
  }
  const LatencyRule& rule = policy.latency_rule(a.coordinates);
  row.ratio = ratio_interval(*log_b, *log_a, policy.confidence, rule.between_runs * std::sqrt(2.0));
  row.change = classify(*row.ratio, rule.ratio_limit);
  return row;
}

std::vector<ComparedRivals> rivals_of(const Result& result, const std::string& filter) {
  std::vector<ComparedRivals> rivals;
  for (const Comparison& c : result.comparisons) {
    if (!matches_glob(filter, c.point)) continue;
    rivals.push_back(
        {.measured = c, .change = classify({c.ratio, c.ci_low, c.ci_high}, rivals_margin)});
  }
  return rivals;
}

std::map<std::string, const CaseRecord*> by_id(const Result& result) {
  std::map<std::string, const CaseRecord*> cases;
  for (const CaseRecord& record : result.cases) cases.emplace(record.id(), &record);
  return cases;
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::faster:
      return "faster";
    case Change::same:
      return "same";
    case Change::slower:
      return "slower";
    case Change::inconclusive:
      return "inconclusive";
    case Change::none:
      return "no ratio";
  }
  throw std::logic_error("change out of range");
}

Change classify(const RatioInterval& interval, double margin) {
  if (interval.low >= 1 / margin && interval.high <= margin) return Change::same;
  if (interval.low > 1) return Change::slower;
  if (interval.high < 1) return Change::faster;
  return Change::inconclusive;
}

SideBySide compare(const Result& a, const Result& b, const Policy& policy,
                   const std::string& filter) {
  const auto in_a = by_id(a), in_b = by_id(b);
  SideBySide table{.rivals_a = rivals_of(a, filter), .rivals_b = rivals_of(b, filter)};
  std::vector<double> ratios;
  for (const CaseRecord& record : a.cases) {
    const std::string id = record.id();
    if (!matches_glob(filter, id)) continue;
    const auto counterpart = in_b.find(id);
    table.cases.push_back(counterpart == in_b.end()
                              ? one_sided(record, true)
                              : compare_case(record, *counterpart->second, policy));
    if (table.cases.back().ratio) ratios.push_back(table.cases.back().ratio->ratio);
  }
  for (const CaseRecord& record : b.cases) {
    const std::string id = record.id();
    if (matches_glob(filter, id) && !in_a.contains(id)) {
      table.cases.push_back(one_sided(record, false));
    }
  }
  if (!ratios.empty()) table.geometric_mean_ratio = geometric_mean(ratios);
  return table;
}

}  // namespace moegauge
