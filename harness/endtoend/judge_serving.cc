#include <algorithm>
#include <array>
#include <cmath>

#include "harness/endtoend/row_verdicts.h"
#include "harness/endtoend/verdicts.h"
#include "harness/judge/findings.h"
#include "harness/judge/numbers.h"

namespace moegauge {
namespace {

std::string values(const NumberJudgement& j, const ServingSides& sides) {
  std::string text = j.name + " " + format_plain(j.result) + " " + j.unit + ", was " +
                     format_plain(j.baseline) + " (" + format_change(j.change) + ")";
  if (sides.now.rows.size() > 1 || sides.then.rows.size() > 1) {
    text += ", medians of " + std::to_string(sides.now.rows.size()) + " and " +
            std::to_string(sides.then.rows.size()) + " runs";
  }
  return text;
}

Finding finding_of(const NumberJudgement& j, const ServingSides& sides, bool controls) {
  const std::string text = values(j, sides), band = format_percent(j.limit);
  const ServingVerdict verdict =
      serving_change(j.result, j.baseline, *direction_of(j.name), j.limit).verdict;
  if (verdict == ServingVerdict::same)
    return {Verdict::pass, "serving", text + ": within the band of " + band, "nothing to do"};
  if (verdict == ServingVerdict::worse) {
    return {Verdict::fail, "serving", text + ": worse by more than the band of " + band,
            "measure both again, one after the other"};
  }
  if (controls) {
    return {Verdict::fail, "serving",
            "a control must not change: " + text + ", beyond the band of " + band,
            "find what differs besides the change under test"};
  }
  return {Verdict::improved, "serving", text + ": better by more than the band of " + band,
          "record a new baseline, so that the gain is kept"};
}

// A gain that rests on a number that cannot be right is none.
void doubt(CaseVerdict& verdict) {
  for (Finding& finding : verdict.findings) {
    if (finding.verdict != Verdict::pass && finding.verdict != Verdict::improved) continue;
    finding.verdict = Verdict::inconclusive;
    finding.facts += ", but suspect";
    finding.advice = "measure it again, warm, before a baseline is made of it";
  }
  verdict.findings.push_back({Verdict::inconclusive, "suspect",
                              "suspect: " + verdict.number->suspect +
                                  "; start-up may have been timed: measure it again, warm"});
}

void put_suspect(const ServingSides& sides, CaseVerdict& verdict) {
  const auto now = sides.suspects_now.find(verdict.id), then = sides.suspects_then.find(verdict.id);
  std::string& why = verdict.number->suspect;
  if (now != sides.suspects_now.end()) why = now->second;
  if (then != sides.suspects_then.end())
    why += (why.empty() ? "" : "; ") + std::string("in the baseline ") + then->second;
  if (!why.empty()) doubt(verdict);
}

CaseVerdict judge_number(const std::string& name, const ServingSides& sides, const Policy& policy) {
  CaseVerdict verdict{.id = sides.now.id + "/" + name};
  const double now = *sides.now.number(name);
  const auto then = sides.then.number(name);
  if (!then || *then <= 0) {
    verdict.findings = {
        {Verdict::not_judged, "baseline",
         name + " " + format_plain(now) + ": the baseline has no such number, nothing to judge"}};
    settle(verdict);
    return verdict;
  }
  verdict.number = NumberJudgement{.name = name,
                                   .unit = unit_of(name),
                                   .result = now,
                                   .baseline = *then,
                                   .relative = true,
                                   .change = now / *then - 1,
                                   .limit = policy.serving_rule(verdict.id).band};
  verdict.findings = {finding_of(*verdict.number, sides, policy.controls)};
  put_suspect(sides, verdict);
  settle(verdict);
  return verdict;
}

// What must be as much on both sides, and how the sentence calls it.
struct Amount {
  const char* name;
  const char* text;
  double tolerance;  // as a share: two runs of one work need not end all answers at one token
  const char* advice;
};
constexpr std::array amounts = {
    Amount{"requests", " requests", 0, "serve as many"},
    Amount{"gpus", " GPUs", 0, "serve on as many, or give each its name with ingest --label"},
    Amount{"input_tokens", " input tokens in all", 0.01, "measure both with prompts of one length"},
    Amount{"output_tokens", " output tokens in all", 0.01,
           "make both write as much, as with --ignore-eos"}};

// Why two points may not be held against each other at all.
std::string no_comparison(const EndToEndPoint& now, const EndToEndPoint& then) {
  for (const Amount& amount : amounts) {
    const auto here = now.number(amount.name), there = then.number(amount.name);
    if (!here || !there || std::abs(*here - *there) <= amount.tolerance * *there) continue;
    return format_plain(*here) + amount.text + ", the baseline's " + format_plain(*there) + ": " +
           amount.advice;
  }
  const std::string &here = now.measured_on.front(), &there = then.measured_on.front();
  if (!here.empty() && !there.empty() && here != there) {
    return "measured on " + here + ", the baseline on " + there +
           ": two machines are no before and after; measure both on one";
  }
  return "";
}

// Requests that fail are not waited for, so that the rest looks fast.
std::optional<Finding> failed_requests(const EndToEndPoint& now, const EndToEndPoint& then) {
  const double failed = now.number("failed").value_or(0),
               before = then.number("failed").value_or(0);
  if (failed <= before) return std::nullopt;
  return Finding{Verdict::fail, "status",
                 format_plain(failed) + " requests failed, the baseline's " + format_plain(before) +
                     ": its times are those of the rest",
                 "find why they fail, and measure again"};
}

// A rate per GPU stands for the rate: one verdict says both.
bool stands_in(const EndToEndPoint& now, const EndToEndPoint& then, const std::string& name) {
  const std::string per_gpu = name + "_per_gpu";
  return now.number(per_gpu) && then.number(per_gpu);
}

}  // namespace

std::vector<std::string> changes_between(const EndToEndPoint& now, const EndToEndPoint& then) {
  std::vector<std::string> changes;
  const auto differ = [&](const std::string& what, const std::string& a, const std::string& b) {
    if (!a.empty() && !b.empty() && a != b) changes.push_back(what + ": " + a + ", was " + b);
  };
  differ("measured on", now.measured_on.front(), then.measured_on.front());
  const auto arguments = [](const EndToEndRow& row) -> std::string {
    if (!row.unknown.is_object()) return "";
    if (row.unknown.contains("arguments") && row.unknown["arguments"].is_string())
      return row.unknown["arguments"];
    if (row.unknown.contains("config") && row.unknown["config"].contains("model_args"))
      return row.unknown["config"]["model_args"].dump();
    return "";
  };
  differ("arguments", arguments(now.row()), arguments(then.row()));
  return changes;
}

std::vector<CaseVerdict> judge_serving(const ServingSides& sides, const Policy& policy) {
  const auto single = [&](Finding finding) {
    CaseVerdict verdict{.id = sides.now.id, .findings = {std::move(finding)}};
    settle(verdict);
    return std::vector{verdict};
  };
  // First, as with fewer requests less is served, which alone would be no comparison.
  const auto failed = failed_requests(sides.now, sides.then);
  if (const std::string why = no_comparison(sides.now, sides.then); !why.empty())
    return single(failed ? *failed : Finding{Verdict::no_verdict, "baseline", why});
  std::vector<CaseVerdict> verdicts;
  if (failed) verdicts = single(*failed);
  for (const auto& [name, value] : sides.now.row().numbers) {
    if (!direction_of(name) || stands_in(sides.now, sides.then, name)) continue;
    verdicts.push_back(judge_number(name, sides, policy));
  }
  for (const auto& [name, value] : sides.then.row().numbers) {
    if (!direction_of(name) || sides.now.number(name)) continue;
    CaseVerdict gone{.id = sides.now.id + "/" + name};
    gone.findings = {{Verdict::no_verdict, "status",
                      "the baseline has " + name +
                          ", the result has not: measure it, narrow "
                          "--filter, or record a new baseline without it"}};
    settle(gone);
    verdicts.push_back(std::move(gone));
  }
  if (verdicts.empty())
    return single({Verdict::no_verdict, "serving",
                   "no time and no throughput to compare: ingest rows that "
                   "hold them"});
  verdicts.front().changes = changes_between(sides.now, sides.then);  // once for the point
  return verdicts;
}

}  // namespace moegauge
