#include "harness/judge/evidence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/counterpart.h"

namespace moegauge {
namespace {

using FirstOk = std::map<std::string, const CaseRecord*>;

void add_side(const std::vector<Result>& processes, FirstOk& first,
              std::vector<double> CaseEvidence::*side, Evidence& evidence) {
  for (const Result& process : processes) {
    for (const CaseRecord& record : process.cases) {
      if (record.measured() == nullptr) continue;
      const std::string id = record.id();
      const CaseRecord& like = *first.emplace(id, &record).first->second;
      if (mismatch(record, like)) continue;
      if (const auto log = log_latency(record.measured()->latency)) {
        (evidence[id].*side).push_back(log->value);
      }
    }
  }
}

// Each number the worse of the two.
void worsen(ErrorMetrics& kept, const ErrorMetrics& other) {
  const auto worse = [](double a, double b) { return a > b || std::isnan(a); };
  if (worse(other.relative_l2, kept.relative_l2)) kept.relative_l2 = other.relative_l2;
  if (worse(other.worst_token, kept.worst_token)) {
    kept.worst_token = other.worst_token;
    kept.worst_token_row = other.worst_token_row;
  }
  kept.max_scaled = std::max(kept.max_scaled, other.max_scaled);
  kept.cosine = std::min(kept.cosine, other.cosine);
  kept.matched = std::min(kept.matched, other.matched);
  kept.non_finite = std::max(kept.non_finite, other.non_finite);
}

// Of one process's case what another one's shows to be worse: its errors; and where it was executed
// as something else, all of it, so that the change is judged.
void take_the_worse(CaseRecord& kept, CaseRecord& other) {
  Measured* const measured = std::get_if<Measured>(&kept.outcome);
  const Measured* const more = other.measured();
  if (measured == nullptr) return;
  if (more == nullptr || mismatch(other, kept)) {
    kept = std::move(other);
    return;
  }
  worsen(measured->check.error.implementation, more->check.error.implementation);
  worsen(measured->check.error.quantization, more->check.error.quantization);
  worsen(measured->check.error.total, more->check.error.total);
}

}  // namespace

Evidence gather(const std::vector<Result>& results, const std::vector<Result>& baselines,
                const Calibration& calibration) {
  Evidence evidence;
  FirstOk now, then;
  add_side(results, now, &CaseEvidence::now, evidence);
  add_side(baselines, then, &CaseEvidence::baseline, evidence);
  for (auto& [id, one] : evidence) {
    const auto record = now.find(id);
    if (record == now.end()) continue;
    const auto device = calibration.find(record->second->device);
    if (device == calibration.end()) continue;
    const auto found = device->second.find(id);
    if (found == device->second.end()) continue;
    const CaseCalibration& c = found->second;
    one.known = {c.between * c.between, static_cast<double>(c.processes - 1)};
    one.known_from = "calibration of " + std::to_string(c.processes) + " processes";
  }
  return evidence;
}

Evidence gather_pairs(const std::vector<Result>& results, const std::vector<Result>& baselines) {
  Evidence evidence;
  FirstOk first_now, first_then;
  for (std::size_t i = 0; i < std::min(results.size(), baselines.size()); ++i) {
    FirstOk then;
    for (const CaseRecord& record : baselines[i].cases) then.emplace(record.id(), &record);
    for (const CaseRecord& record : results[i].cases) {
      const std::string id = record.id();
      const auto partner = then.find(id);
      if (partner == then.end()) continue;
      if (record.measured() == nullptr || partner->second->measured() == nullptr) continue;
      const CaseRecord& like_now = *first_now.emplace(id, &record).first->second;
      const CaseRecord& like_then = *first_then.emplace(id, partner->second).first->second;
      if (mismatch(record, like_now) || mismatch(*partner->second, like_then)) continue;
      const auto a = log_latency(partner->second->measured()->latency);
      const auto b = log_latency(record.measured()->latency);
      if (!a || !b) continue;
      CaseEvidence& one = evidence[id];
      one.now.push_back(b->value);
      one.baseline.push_back(a->value);
      one.pairs.push_back(b->value - a->value);
    }
  }
  return evidence;
}

Result representative(std::vector<Result> processes) {
  Result one = std::move(processes.front());
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < one.cases.size(); ++i) at.emplace(one.cases[i].id(), i);
  for (std::size_t p = 1; p < processes.size(); ++p) {
    for (CaseRecord& record : processes[p].cases) {
      const auto [known, is_new] = at.emplace(record.id(), one.cases.size());
      if (is_new) {
        one.cases.push_back(std::move(record));
      } else {
        take_the_worse(one.cases[known->second], record);
      }
    }
  }
  return one;
}

}  // namespace moegauge
