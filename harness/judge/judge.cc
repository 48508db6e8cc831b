#include "harness/judge/judge.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "harness/judge/counterpart.h"
#include "harness/judge/findings.h"
#include "harness/judge/statistics.h"
#include "harness/suite/select.h"

namespace moegauge {
namespace {

using CasesById = std::map<std::string, const CaseRecord*>;

CasesById index_cases(const Result& result, const std::string& filter) {
  CasesById cases;
  for (const CaseRecord& record : result.cases) {
    const std::string id = record.id();
    if (matches_glob(filter, id)) cases.emplace(id, &record);
  }
  return cases;
}

std::string how_to_repeat(const CaseRecord& record) {
  return record.repro.empty() ? "repeat it alone" : "repeat it with: " + record.repro;
}

// The kernel ran, or should have, and did not deliver.
bool is_fault(Status status) {
  switch (status) {
    case Status::inaccurate:
    case Status::crashed:
    case Status::timeout:
    case Status::out_of_memory:
    case Status::error:
      return true;
    case Status::ok:
    case Status::unsupported:
    case Status::refused_config:
    case Status::infrastructure:
    case Status::skipped:
      return false;
  }
  return true;
}

// Why the baseline's numbers may not be held against the result's; both cases exist.
std::optional<Finding> no_comparison(const CaseRecord& record, const CaseRecord& baseline) {
  if (!baseline.measured()) {
    return Finding{Verdict::no_verdict, "baseline",
                   "the baseline has no latency for it, it was " + why_not_ok(baseline) +
                       ": record a new baseline"};
  }
  const std::optional<Mismatch> differs = mismatch(record, baseline);
  if (!differs) return std::nullopt;
  return Finding{Verdict::no_verdict, "baseline",
                 "the " + differs->what + " is " + differs->now + ", the baseline's " +
                     differs->then + ": " + differs->remedy};
}

class Judge {
 public:
  // `latencies`: of the cases that several processes judge, by id.
  Judge(const Policy& policy, const ShippedLimits& shipped,
        const std::map<std::string, LatencyVerdict>& latencies)
      : policy_(policy), shipped_(shipped), latencies_(latencies) {}

  CaseVerdict operator()(const CaseRecord& record, const CaseRecord* baseline) const {
    CaseVerdict verdict{.id = record.id(), .repro = record.repro};
    if (record.measured()) {
      judge_measured(record, baseline, verdict);
    } else {
      judge_unmeasured(record, baseline, verdict);
    }
    if (policy_.controls) fail_what_changed(verdict);
    settle(verdict);
    return verdict;
  }

 private:
  static void fail_what_changed(CaseVerdict& verdict) {
    for (Finding& finding : verdict.findings) {
      const bool improved = finding.verdict == Verdict::improved;
      if (improved) finding.verdict = Verdict::fail;
      if (finding.verdict != Verdict::fail || finding.advice.empty()) continue;
      finding.facts = "a control must not change: " + finding.facts;
      finding.advice = "find what differs besides the change under test";
    }
  }

  void judge_absolute_error(const CaseRecord& record, const CheckResult& check,
                            const CheckResult* baseline, CaseVerdict& verdict) const {
    const auto shipped = shipped_(record, check);
    if (!shipped) {
      verdict.findings.push_back({Verdict::no_verdict, "error",
                                  "its error limits are not known here: " + shipped.error()});
      return;
    }
    const ErrorLimits limits =
        limits_in_force(policy_.error_rule(record.coordinates), policy_.total, *shipped);
    verdict.errors = error_numbers(check, baseline, limits);
    verdict.findings = judge_error(check, limits);
  }

  void judge_measured(const CaseRecord& record, const CaseRecord* baseline,
                      CaseVerdict& verdict) const {
    const Measured& now = *record.measured();
    const bool was_measured = baseline != nullptr && baseline->measured();
    judge_absolute_error(record, now.check, was_measured ? &baseline->measured()->check : nullptr,
                         verdict);
    if (record.coordinates.tokens > 0 && now.check.checked.rows == 0) {
      verdict.findings.push_back({Verdict::no_verdict, "error",
                                  "no row of the output was compared with the truth, so that its "
                                  "errors say nothing: run it on other inputs"});
    }
    if (baseline == nullptr) {
      verdict.findings.push_back({Verdict::no_verdict, "baseline",
                                  "the baseline has no such case: record a new baseline with it"});
      return;
    }
    if (auto finding = no_comparison(record, *baseline)) {
      verdict.findings.push_back(*finding);
      return;
    }
    const Measured& then = *baseline->measured();
    auto grown = judge_error_growth(now.check, then.check, policy_.error_rule(record.coordinates));
    for (Finding& finding : grown) finding.of_baseline = true;
    verdict.findings.insert(verdict.findings.end(), grown.begin(), grown.end());
    verdict.changes = changes(record, *baseline);
    if (record.coordinates.tokens == 0) {
      // Nothing is launched, so there is no time to compare: status and error are all there is.
      verdict.findings.push_back(
          {Verdict::pass, "latency", "0 tokens take no time: nothing to compare"});
      return;
    }
    const auto by_processes = latencies_.find(verdict.id);
    LatencyVerdict latency =
        by_processes != latencies_.end()
            ? by_processes->second
            : judge_latency(now, then, policy_.latency_rule(record.coordinates),
                            policy_.confidence);
    latency.finding.of_baseline = true;
    verdict.findings.push_back(std::move(latency.finding));
    verdict.latency = latency.numbers;
  }

  void judge_unmeasured(const CaseRecord& record, const CaseRecord* baseline,
                        CaseVerdict& verdict) const {
    const auto& outcome = std::get<Unmeasured>(record.outcome);
    const auto status = [&](Verdict severity, const std::string& sentence) {
      verdict.findings.push_back({severity, "status", sentence});
    };
    const bool was_ok = baseline != nullptr && baseline->measured();
    const std::string now = (was_ok ? "ok in the baseline, now " : "") + why_not_ok(record);
    if (outcome.check) judge_absolute_error(record, *outcome.check, nullptr, verdict);
    if (is_fault(outcome.status)) {
      status(Verdict::fail, now + ": " + how_to_repeat(record));
    } else if (outcome.status == Status::infrastructure) {
      status(Verdict::no_verdict, now + ": mend the machine and run again");
    } else if (!was_ok) {
      status(Verdict::not_judged, now + ": nothing to judge");
    } else if (std::ranges::count(outcome.absent_backends, baseline->backend) > 0) {
      status(Verdict::no_verdict,
             now + "; the baseline's device, " + baseline->device +
                 ", is not on this machine: run where it is, or record a baseline of what is here");
    } else if (record.device != baseline->device && !record.device.empty()) {
      status(Verdict::no_verdict, now + ", but the baseline is of another device, " +
                                      baseline->device + ": record one on " + record.device);
    } else {
      status(Verdict::fail, now + ": make it run again, or record a new baseline without it");
    }
  }

  const Policy& policy_;
  const ShippedLimits& shipped_;
  const std::map<std::string, LatencyVerdict>& latencies_;
};

// Both sides' latencies mean the same and can be trusted.
bool comparable(const CaseRecord& now, const CaseRecord& then) {
  if (!now.measured() || !then.measured() || now.coordinates.tokens == 0) return false;
  return !now.measured()->suspect && !then.measured()->suspect && !mismatch(now, then);
}

std::map<std::string, LatencyVerdict> by_processes(const CasesById& now, const CasesById& then,
                                                   const Policy& policy, const Evidence& evidence) {
  struct Together {
    std::vector<std::string> ids = {};
    std::vector<ProcessCase> cases = {};
  } apart, paired;
  for (const auto& [id, record] : now) {
    const auto counterpart = then.find(id);
    const auto known = evidence.find(id);
    if (counterpart == then.end() || known == evidence.end()) continue;
    if (!comparable(*record, *counterpart->second) || !judged_by_processes(known->second)) continue;
    Together& group = known->second.pairs.size() > 1 ? paired : apart;
    group.ids.push_back(id);
    group.cases.push_back({&known->second, &policy.latency_rule(record->coordinates)});
  }
  std::map<std::string, LatencyVerdict> by_id;
  const auto add = [&by_id](const Together& group, std::vector<LatencyVerdict> verdicts) {
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      by_id.emplace(group.ids[i], std::move(verdicts[i]));
    }
  };
  add(apart, judge_latencies(apart.cases, policy));
  add(paired, judge_pairs(paired.cases, policy));
  return by_id;
}

std::vector<std::string_view> fields_of(std::string_view id) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t end = id.find('/', begin);
    fields.push_back(id.substr(begin, end - begin));
    if (end == std::string_view::npos) return fields;
    begin = end + 1;
  }
}

bool differ_in_one_field(std::string_view a, std::string_view b) {
  const auto left = fields_of(a), right = fields_of(b);
  if (left.size() != right.size()) return false;
  int different = 0;
  for (std::size_t i = 0; i < left.size(); ++i) different += left[i] != right[i];
  return different == 1;
}

CaseVerdict vanished(const std::string& id, const CasesById& result, const CasesById& baseline) {
  std::string hint;
  for (const auto& [candidate, record] : result) {
    if (!baseline.contains(candidate) && differ_in_one_field(id, candidate)) {
      hint = "; if it is now " + candidate + ", record a new baseline under that name";
      break;
    }
  }
  CaseVerdict verdict{.id = id, .verdict = Verdict::no_verdict};
  verdict.findings.push_back(
      {Verdict::no_verdict, "status",
       "ok in the baseline, absent from the result: run it, narrow --filter, or record a new "
       "baseline without it" +
           hint});
  return verdict;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::not_judged:
      return "not judged";
    case Verdict::pass:
      return "pass";
    case Verdict::improved:
      return "improved";
    case Verdict::known_issue:
      return "known issue";
    case Verdict::inconclusive:
      return "inconclusive";
    case Verdict::no_verdict:
      return "no verdict";
    case Verdict::fail:
      return "fail";
  }
  throw std::logic_error("verdict out of range");
}

void settle(CaseVerdict& verdict) {
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.verdict > b.verdict; });
  verdict.verdict = verdict.findings.front().verdict;
}

std::size_t Judgement::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(),
                    [verdict](const CaseVerdict& c) { return c.verdict == verdict; }));
}

Judgement judge(const Result& result, const Result& baseline, const Policy& policy,
                const ShippedLimits& shipped, const std::string& filter, const Evidence& evidence) {
  const CasesById now = index_cases(result, filter);
  const CasesById then = index_cases(baseline, filter);
  const std::map<std::string, LatencyVerdict> latencies = by_processes(now, then, policy, evidence);
  const Judge judge_case(policy, shipped, latencies);

  Judgement judgement{.policy = policy.name, .strict = policy.strict};
  std::vector<double> ratios;
  for (const CaseRecord& record : result.cases) {
    const std::string id = record.id();
    if (!now.contains(id)) continue;
    const auto counterpart = then.find(id);
    CaseVerdict verdict =
        judge_case(record, counterpart == then.end() ? nullptr : counterpart->second);
    if (verdict.latency) ratios.push_back(verdict.latency->ratio);
    judgement.cases.push_back(std::move(verdict));
  }
  for (const CaseRecord& record : baseline.cases) {
    const std::string id = record.id();
    if (record.measured() && then.contains(id) && !now.contains(id)) {
      judgement.cases.push_back(vanished(id, now, then));
    }
  }
  if (!ratios.empty()) judgement.geometric_mean_ratio = geometric_mean(ratios);
  return judgement;
}

namespace {

struct Conclusion {
  int code = 0;
  std::string sentence;
};

std::string cases(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " case" : " cases");
}

// How little was held against the baseline must not hide behind how little failed of it.
std::string of_which_judged(const Judgement& j) {
  const std::size_t apart = j.count(Verdict::no_verdict), skipped = j.count(Verdict::not_judged);
  if (apart + skipped == 0) return "";
  std::string text = "; " + std::to_string(j.cases.size() - apart - skipped) + " judged";
  if (apart > 0) text += ", " + std::to_string(apart) + " could not be compared";
  if (skipped > 0) text += ", " + std::to_string(skipped) + " with nothing to judge";
  return text;
}

Conclusion conclude(const Judgement& j) {
  const auto of_all = [&j](std::size_t count) {
    return std::to_string(count) + " of " + cases(j.cases.size());
  };
  const std::size_t failed = j.count(Verdict::fail);
  const std::size_t no_verdict = j.count(Verdict::no_verdict);
  const std::size_t inconclusive = j.count(Verdict::inconclusive);
  const std::size_t passed = j.count(Verdict::pass) + j.count(Verdict::improved);
  // With 0 tokens there is no time to compare.
  const bool any_compared = std::ranges::any_of(j.cases, [](const CaseVerdict& c) {
    return (c.verdict == Verdict::pass || c.verdict == Verdict::improved) &&
           (c.latency || c.number);
  });
  const std::size_t known = j.count(Verdict::known_issue);
  const std::string and_known =
      known == 0 ? ""
                 : "; " + std::to_string(known) + (known == 1 ? " known issue" : " known issues");
  if (failed > 0) return {1, "FAIL: " + of_all(failed) + of_which_judged(j)};
  if (j.cases.empty()) return {4, "NO VERDICT: no case matched"};
  if (no_verdict > 0) {
    return {4, "NO VERDICT: " + of_all(no_verdict) + " could not be compared; " +
                   std::to_string(passed + inconclusive + known) + " judged"};
  }
  if (!j.cut.empty()) return {4, "NO VERDICT: " + j.cut};
  if (passed + inconclusive + known == 0)
    return {4, "NO VERDICT: no case is ok, so nothing was judged"};
  // No data is no pass: it would stay green however slow a kernel became.
  if (passed == 0 || (inconclusive > 0 && !any_compared))
    return {4, "NO VERDICT: " + of_all(inconclusive) + " inconclusive, none judged" + and_known};
  if (inconclusive > 0 && j.strict) {
    return {4, "NO VERDICT: " + of_all(inconclusive) + " inconclusive under a strict policy" +
                   and_known};
  }
  if (inconclusive > 0) {
    return {0, "PASS: nothing failed; " + of_all(inconclusive) + " inconclusive" + and_known +
                   of_which_judged(j)};
  }
  return {0, "PASS: " + cases(passed) + and_known + of_which_judged(j)};
}

}  // namespace

int exit_code(const Judgement& judgement) { return conclude(judgement).code; }
std::string conclusion(const Judgement& judgement) { return conclude(judgement).sentence; }

}  // namespace moegauge
