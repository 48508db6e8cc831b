// Whether a result may stand against a baseline. Pure logic: files, printing and exit codes of
// other kinds are the command's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/change.h"
#include "harness/judge/evidence.h"
#include "harness/judge/policy.h"
#include "harness/result/record.h"
#include "reference/base/expected.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

// From harmless to harmful: of several findings on one case the last in this order is its verdict.
enum class Verdict : std::uint8_t {
  not_judged,  // it cannot run here and could not when the baseline was made
  pass,
  improved,
  known_issue,   // it would fail, but the policy lists it until a date
  inconclusive,  // the interval holds the limit
  no_verdict,    // nothing to compare with
  fail,
};
std::string_view to_string(Verdict verdict);

// One thing noticed about a case.
struct Finding {
  Verdict verdict = Verdict::pass;
  std::string subject = {};  // status, baseline, latency, or the error's name in the record
  std::string facts = {};    // with the numbers; where there is no advice, with that too
  // What a person must do next, where another rule may want something else done.
  std::string advice = {};
  bool of_baseline = false;  // it compares with the baseline's numbers, not with a limit alone

  std::string sentence() const { return advice.empty() ? facts : facts + "; " + advice; }
};

struct LatencyJudgement {
  double result_us = 0, baseline_us = 0;  // medians
  double ratio = 1, low = 1, high = 1;    // result / baseline, interval at the policy's confidence
  double limit = 1;
  double smallest_failing_ratio = 1;         // what would have failed, given this much noise
  double within_runs = 0, between_runs = 0;  // standard errors of ln(ratio): samples, processes
  // Of one process a side, with a spread that the policy assumes, `same` is never said.
  Change change = Change::inconclusive;
  std::size_t result_processes = 1, baseline_processes = 1;
  double between_processes = 0;           // standard deviation of ln(median) that was used
  std::string spread_from = {};           // where it is from
  std::string limited_by = {};            // what decided smallest_failing_ratio
  std::optional<double> adjusted_p = {};  // none where one process a side was compared
  std::size_t pairs_needed = 0;           // to confirm a candidate of this run; 0: not known
};

// One error of the record, by its name there, with what it was held to.
struct ErrorNumber {
  std::string name = {};
  double value = 0;
  std::optional<double> limit = {};     // absolute; none where only its growth is judged
  std::optional<double> baseline = {};  // none where there is nothing to compare with
};

// One number of serving, or one score of a task, held against its baseline.
struct NumberJudgement {
  std::string name = {};  // as in the record: ttft_ms.mean, value
  std::string unit = {};  // ms, tok/s, requests/s; none of a score
  double result = 0, baseline = 0;
  bool relative = false;  // change is of the baseline; else it is a difference
  bool share = false;     // a score from 0 to 1: a difference reads as a percentage
  double change = 0;
  double limit = 0;                           // the policy's band or margin
  std::optional<double> low = {}, high = {};  // one-sided bounds of a difference
  std::optional<double> smallest_seen = {};   // loss that would have been seen, power 80%
  std::optional<double> result_error = {}, baseline_error = {};          // standard errors
  std::optional<double> result_questions = {}, baseline_questions = {};  // given or estimated
  std::optional<double> mcnemar_p = {};  // where the same questions were asked and logged
  std::string suspect = {};              // why the numbers cannot be what they say
};

struct CaseVerdict {
  std::string id = {};
  Verdict verdict = Verdict::pass;
  std::vector<Finding> findings = {};  // worst first
  std::optional<LatencyJudgement> latency = {};
  std::optional<NumberJudgement> number = {};  // of serving and accuracy
  std::vector<ErrorNumber> errors = {};        // empty where nothing was checked
  // What else is not as it was in the baseline (kernel hash, declared numerics, ...).
  std::vector<std::string> changes = {};
  std::string repro = {};

  std::string sentence() const { return findings.front().sentence(); }
};

struct Judgement {
  std::string policy = {};
  bool strict = false;
  std::vector<CaseVerdict> cases = {};  // in the result's order, then those that vanished
  // Where the result's or the baseline's file was cut: where. Whoever read it says so. The whole
  // cases are judged and may fail, but a case that is lost on both sides must not pass unseen.
  std::string cut = {};
  std::vector<std::string> notes = {};              // on the policy, for who keeps it; no verdict
  std::optional<double> geometric_mean_ratio = {};  // of all compared cases; shown, never judged
  std::vector<std::string> means = {};  // sentences over points of serving; never judged

  std::size_t count(Verdict verdict) const;
};

// Limits of error.implementation that ship with the scheme of a checked case, or why they are not
// known.
using ShippedLimits = std::function<Expected<ErrorLimits, std::string>(const CaseRecord& record,
                                                                       const CheckResult& check)>;

// Cases of which `evidence` holds several processes, or a known spread, are judged by it, all
// together. Only cases whose id matches `filter` (suite/select.h) take part, on both sides.
Judgement judge(const Result& result, const Result& baseline, const Policy& policy,
                const ShippedLimits& shipped, const std::string& filter = "*",
                const Evidence& evidence = {});

// 1: something failed. 4: no verdict on some case, a file that was cut, nothing measured to judge,
// nothing but inconclusive cases, or one under a strict policy. 0: otherwise.
int exit_code(const Judgement& judgement);
// One sentence that explains that code.
std::string conclusion(const Judgement& judgement);

}  // namespace moegauge
