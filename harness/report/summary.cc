#include "harness/report/summary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "harness/judge/counterpart.h"
#include "harness/judge/numbers.h"
#include "harness/judge/report_parts.h"

namespace moegauge {
namespace {

std::string counted(std::size_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string text_at(const nlohmann::ordered_json& machine, const char* key) {
  if (!machine.is_object()) return "";
  const auto found = machine.find(key);
  return found != machine.end() && found->is_string() ? found->get<std::string>() : "";
}

MachineLine machine_line(const ReportFile& file, const std::string& role) {
  MachineLine line{.file = file.name + role,
                   .date = text_at(file.result.machine, "date"),
                   .host = text_at(file.result.machine, "host_name"),
                   .cases = file.result.cases.size(),
                   .rows = file.result.end_to_end.size()};
  for (const auto& [key, value] : file.result.context) {
    if (key == "suite") line.suite = value;
    if (key == "moegauge_version") line.version = value;
  }
  // Of what was ingested the file says it in words, if at all.
  for (const auto& [key, value] : file.result.context)
    if (key == "measured_on" && value != "not stated") line.devices = value;
  std::set<std::string> devices;
  for (const CaseRecord& record : file.result.cases) {
    if (record.measured()) ++line.ok;
    if (!record.device.empty() && devices.insert(record.device).second)
      line.devices += (line.devices.empty() ? "" : ", ") + record.device;
  }
  return line;
}

// How badly a case without baseline needs somebody; 0: not at all.
struct Need {
  double weight = 0;
  std::string why = {};
};

// Its rival in `pairs` is faster by the factor `speedup` < 1.
Need need_of(const CaseRecord& record, const std::map<std::string, double>& losses) {
  switch (record.status()) {
    case Status::unsupported:
    case Status::refused_config:
    case Status::skipped:
      return {};
    case Status::ok:
      break;
    default:
      return {1000, why_not_ok(record)};
  }
  const Measured& measured = *record.measured();
  if (measured.suspect) return {500, "suspect: " + measured.suspect_reason};
  if (const auto found = losses.find(record.id()); found != losses.end())
    return {100 / found->second,
            "its config loses to the default: speed-up " + format_ratio(found->second)};
  const double fraction = measured.roofline.fraction;
  if (fraction > 0 && fraction < 1)
    return {1 - fraction, format_percent(fraction) + " of the floor's speed"};
  return {};
}

std::vector<WorstCase> worst_without_baseline(const ReportInput& input) {
  std::map<std::string, double> losses;
  for (const Row& row : rows_of(input, {}).pairs) {
    if (row["lost"] == true && row["kind"] == "tuned over default")
      losses[row["rival"]] = row["speedup"];
  }
  struct Candidate {
    double weight;
    WorstCase worst;
  };
  std::vector<Candidate> candidates;
  for (const ReportFile& file : input.files) {
    for (const CaseRecord& record : file.result.cases) {
      Need need = need_of(record, losses);
      if (need.weight > 0)
        candidates.push_back({need.weight, {record.id(), std::move(need.why), record.repro}});
    }
  }
  std::ranges::stable_sort(candidates, std::greater(), &Candidate::weight);
  std::vector<WorstCase> worst;
  for (Candidate& candidate : candidates) {
    if (worst.size() == worst_cases) break;
    worst.push_back(std::move(candidate.worst));
  }
  return worst;
}

// How soon somebody should look at a case; 0: first. What a spent budget skipped says nothing of
// the kernel, and what passed is looked at only where nothing else is there.
enum class Turn : std::uint8_t { failed, maybe_slower, other, skipped, fine, none };

// Of a number, less is better for times, more for rates and scores; see report_parts.cc.
bool leans_to_worse(const CaseVerdict& verdict) {
  if (verdict.number)
    return verdict.number->unit == "ms" ? verdict.number->change > 0 : verdict.number->change < 0;
  return verdict.latency && verdict.latency->ratio > 1;
}

Turn turn_of(const CaseVerdict& verdict, bool skipped) {
  switch (verdict.verdict) {
    case Verdict::not_judged:
      return Turn::none;
    case Verdict::pass:
    case Verdict::improved:
      return Turn::fine;
    case Verdict::fail:
      return skipped ? Turn::skipped : Turn::failed;
    case Verdict::inconclusive:
      return leans_to_worse(verdict) ? Turn::maybe_slower : Turn::other;
    default:
      return skipped ? Turn::skipped : Turn::other;
  }
}

std::vector<WorstCase> worst_judged(const ReportInput& input,
                                    const std::vector<Judgement>& judgements) {
  struct Candidate {
    Turn turn;
    const CaseVerdict* verdict;
  };
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < judgements.size(); ++i) {
    std::set<std::string> skipped;
    for (const CaseRecord& record : input.files[i].result.cases)
      if (record.status() == Status::skipped) skipped.insert(record.id());
    for (const CaseVerdict* verdict : worst_first(judgements[i]))
      all.push_back({turn_of(*verdict, skipped.contains(verdict->id)), verdict});
  }
  std::ranges::stable_sort(all, {}, &Candidate::turn);
  const bool any_not_fine = !all.empty() && all.front().turn < Turn::fine;
  std::vector<WorstCase> worst;
  for (const auto& [turn, verdict] : all) {
    if (worst.size() == worst_cases || turn == Turn::none) break;
    if (turn == Turn::fine && any_not_fine) break;
    worst.push_back({verdict->id, verdict->sentence(), verdict->repro});
  }
  return worst;
}

// Where and by what it was measured, of each result against the baseline, where both say it.
std::vector<std::string> changed_conditions(const ReportInput& input) {
  const MachineLine then = machine_line(*input.baseline, "");
  std::vector<std::string> changes;
  for (const ReportFile& file : input.files) {
    const MachineLine now = machine_line(file, "");
    const std::string of_file = input.files.size() > 1 ? file.name + ": " : "";
    const auto add = [&](const char* what, std::string MachineLine::*part) {
      const std::string &is = now.*part, &was = then.*part;
      if (is == was || is.empty() || was.empty()) return;
      changes.push_back(of_file + what + " " + is + ", was " + was);
    };
    add("device", &MachineLine::devices);
    add("host", &MachineLine::host);
    add("suite", &MachineLine::suite);
    add("moegauge version", &MachineLine::version);
  }
  return changes;
}

std::vector<std::string> changes_of(const ReportInput& input,
                                    const std::vector<Judgement>& judgements) {
  std::map<std::string, std::size_t> counts;
  std::size_t improved = 0;
  for (const Judgement& judgement : judgements) {
    improved += judgement.count(Verdict::improved);
    for (const CaseVerdict& verdict : judgement.cases) {
      // Hashes differ from case to case; that code changed is one change.
      for (const std::string& change : verdict.changes)
        ++counts[change.substr(0, change.find(':'))];
    }
  }
  std::vector<std::string> changes =
      input.baseline ? changed_conditions(input) : std::vector<std::string>{};
  if (improved > 0) changes.push_back(counted(improved, "case") + " improved");
  for (const auto& [change, count] : counts)
    changes.push_back(change + " (" + counted(count, "case") + ")");
  return changes;
}

void put_verdict(const ReportInput& input, const std::vector<Judgement>& judgements,
                 ReportSummary& summary) {
  summary.level = "pass";
  for (std::size_t i = 0; i < judgements.size(); ++i) {
    const int code = exit_code(judgements[i]);
    if (code == 1) summary.level = "fail";
    if (code != 0 && summary.level == "pass") summary.level = "unknown";
    summary.sentence += (i == 0 ? "" : "; ") +
                        (judgements.size() > 1 ? input.files[i].name + ": " : "") +
                        conclusion(judgements[i]);
  }
}

// Without a baseline nothing can be better or worse; what can be said is what happened.
void put_outcome(const ReportInput& input, ReportSummary& summary) {
  std::map<std::string, std::size_t> others;
  std::size_t ok = 0, all = 0, rows = 0;
  for (const ReportFile& file : input.files) {
    rows += file.result.end_to_end.size();
    for (const CaseRecord& record : file.result.cases) {
      ++all;
      if (record.measured()) {
        ++ok;
      } else {
        ++others[std::string(to_string(record.status()))];
      }
    }
  }
  summary.level = "unknown";
  summary.sentence = "No verdict without a baseline: " + std::to_string(ok) + " of " +
                     counted(all, "case") + " measured";
  if (rows > 0) summary.sentence += ", " + counted(rows, "serving or accuracy row");
  for (const auto& [status, count] : others)
    summary.sentence += ", " + std::to_string(count) + " " + status;
}

// What the nightly trend cannot show.
void put_history_warnings(const Nightly& nightly, ReportSummary& summary) {
  if (nightly.unknown > 0) {
    summary.warnings.push_back(nightly.name + ": no run of " + counted(nightly.unknown, "case") +
                               " on the device of these results");
  }
  if (nightly.left_out > 0) {
    summary.warnings.push_back(
        "The nightly trend shows " + counted(nightly.trends.size(), "case") +
        ", those whose level "
        "changed last or that stand farthest from their anchors; there was no room for " +
        std::to_string(nightly.left_out) + " more, --filter chooses");
  }
}

}  // namespace

ReportSummary summary_of(const ReportInput& input, const std::vector<Judgement>& judgements) {
  ReportSummary summary;
  if (judgements.empty()) {
    put_outcome(input, summary);
    summary.worst = worst_without_baseline(input);
  } else {
    put_verdict(input, judgements, summary);
    summary.worst = worst_judged(input, judgements);
    summary.changes = changes_of(input, judgements);
  }
  for (const ReportFile& file : input.files) {
    summary.machines.push_back(machine_line(file, ""));
    if (!file.cut.empty()) summary.warnings.push_back(file.cut);
  }
  if (input.baseline) {
    summary.machines.push_back(machine_line(*input.baseline, " (baseline)"));
    if (!input.baseline->cut.empty()) summary.warnings.push_back(input.baseline->cut);
  }
  if (input.nightly) put_history_warnings(*input.nightly, summary);
  return summary;
}

}  // namespace moegauge
