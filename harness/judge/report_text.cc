#include "harness/judge/numbers.h"
#include "harness/judge/report.h"
#include "harness/judge/report_parts.h"
#include "harness/judge/text_table.h"

namespace moegauge {
namespace {

// Terminals are wide but ids are long: the id stands last, where it may run over.
std::string case_table(const Judgement& judgement) {
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.add({"verdict", "result", "baseline", "ratio", "interval", "case"});
  for (const CaseVerdict& verdict : judgement.cases) {
    const LatencyCells cells = latency_cells(verdict);
    table.add({std::string(to_string(verdict.verdict)), cells.result, cells.baseline, cells.ratio,
               cells.interval, verdict.id});
  }
  return table.str();
}

std::string error_table(const std::vector<ErrorNumber>& errors) {
  const auto optional = [](const std::optional<double>& number) {
    return number ? format_error(*number) : "-";
  };
  TextTable table({Align::left, Align::right, Align::right, Align::right});
  table.add({"  error", "result", "limit", "baseline"});
  for (const ErrorNumber& e : errors) {
    table.add({"  " + e.name, format_error(e.value), optional(e.limit), optional(e.baseline)});
  }
  return table.str();
}

std::string number_table(const NumberJudgement& j) {
  TextTable table({Align::left, Align::right});
  const auto add = [&table](const char* name, const std::optional<double>& number) {
    if (number) table.add({std::string("  ") + name, format_plain(*number)});
  };
  add("result", j.result);
  add("baseline", j.baseline);
  add(j.relative ? "change, of the baseline" : "difference", j.change);
  add("its one-sided bound below", j.low);
  add("its one-sided bound above", j.high);
  add(j.relative ? "band" : "margin", j.limit);
  add("standard error, result", j.result_error);
  add("standard error, baseline", j.baseline_error);
  add("questions, result", j.result_questions);
  add("questions, baseline", j.baseline_questions);
  add("loss that would have been seen, power 80%", j.smallest_seen);
  add("McNemar's p, against the result", j.mcnemar_p);
  return table.str();
}

std::string paragraph(const CaseVerdict& verdict) {
  std::string text = std::string(to_string(verdict.verdict)) + ": " + verdict.id + "\n";
  for (const Finding& finding : verdict.findings) {
    if (needs_person(finding.verdict)) text += "    " + finding.sentence() + "\n";
  }
  for (const std::string& change : verdict.changes) text += "    changed: " + change + "\n";
  return text;
}

std::string outcome_table(const Judgement& judgement) {
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.add({"B is", "A", "B", "B / A", "interval", "case"});
  for (const CaseVerdict& verdict : judgement.cases) {
    const LatencyCells cells = latency_cells(verdict);
    const Change change = verdict.latency ? verdict.latency->change : Change::none;
    table.add({std::string(to_string(change)), cells.baseline, cells.result, cells.ratio,
               cells.interval, verdict.id});
  }
  return table.str();
}

std::string what_to_do(const Judgement& judgement) {
  std::string text;
  for (const CaseVerdict* verdict : worst_first(judgement)) {
    if (needs_person(*verdict)) text += paragraph(*verdict) + "\n";
  }
  for (const std::string& note : judgement.notes) text += "note: " + note + "\n";
  if (judgement.geometric_mean_ratio) {
    text += "geometric mean of the ratios (shown, never judged): " +
            format_ratio(*judgement.geometric_mean_ratio) + "\n";
  }
  for (const std::string& note : judgement.means) text += note + "\n";
  return text + conclusion(judgement) + "\n";
}

}  // namespace

std::string text_report(const Judgement& judgement, const ReportTitle& title) {
  return title.result + " against " + title.baseline + ", policy " + judgement.policy + "\n\n" +
         case_table(judgement) + "\n" + what_to_do(judgement);
}

std::string text_report_of_builds(const Judgement& judgement, const ReportTitle& title) {
  return "A = " + title.baseline + "\nB = " + title.result + "\npolicy " + judgement.policy +
         "\n\n" + outcome_table(judgement) + "\n" + what_to_do(judgement);
}

std::string text_explanation(const CaseVerdict& verdict) {
  std::string text = verdict.id + "\nverdict: " + std::string(to_string(verdict.verdict)) + "\n";
  for (const Finding& finding : verdict.findings) {
    text += "  " + std::string(to_string(finding.verdict)) + ", " + finding.subject + ": " +
            finding.sentence() + "\n";
  }
  for (const std::string& change : verdict.changes) text += "  changed: " + change + "\n";
  if (verdict.latency) {
    const LatencyJudgement& j = *verdict.latency;
    TextTable table({Align::left, Align::right});
    table.add({"  median, result", format_us(j.result_us)});
    table.add({"  median, baseline", format_us(j.baseline_us)});
    table.add({"  ratio", format_ratio(j.ratio)});
    table.add({"  interval of the ratio, low end", format_ratio(j.low)});
    table.add({"  interval of the ratio, high end", format_ratio(j.high)});
    table.add({"  standard error within the runs", format_percent(j.within_runs)});
    table.add({"  standard error between processes", format_percent(j.between_runs)});
    table.add({"  processes, result and baseline",
               std::to_string(j.result_processes) + ", " + std::to_string(j.baseline_processes)});
    table.add({"  spread of one process", format_percent(j.between_processes)});
    table.add({"  limit", format_ratio(j.limit)});
    table.add({"  smallest ratio that would have failed", format_ratio(j.smallest_failing_ratio)});
    text += table.str();
    text += "  the spread is from: " + j.spread_from +
            "\n  that smallest ratio is set by: " + j.limited_by +
            "\n  outcome: " + std::string(to_string(j.change)) + "\n";
    if (j.adjusted_p)
      text += "  p, corrected for the cases of the run: " + format_error(*j.adjusted_p) + "\n";
    if (j.pairs_needed > 0) {
      text += "  pairs that would confirm or clear it: " + std::to_string(j.pairs_needed) + "\n";
    }
  }
  if (verdict.number) text += number_table(*verdict.number);
  if (!verdict.errors.empty()) text += error_table(verdict.errors);
  if (!verdict.repro.empty()) text += "repeat with: " + verdict.repro + "\n";
  return text;
}

namespace {

std::string rivals_table(const std::vector<ComparedRivals>& rivals, const std::string& name) {
  if (rivals.empty()) return "";
  TextTable table({Align::left, Align::right, Align::left, Align::left});
  table.add({"first is", "ratio", "interval", "first / second"});
  for (const ComparedRivals& r : rivals) {
    const Comparison& c = r.measured;
    table.add({std::string(to_string(r.change)), format_ratio(c.ratio),
               format_interval(c.ci_low, c.ci_high), c.a + " / " + c.b});
  }
  return "\nrivals within " + name + ", measured in turn:\n" + table.str();
}

std::string numbers_table(const SideBySide& side_by_side) {
  if (side_by_side.numbers.empty()) return "";
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.add({"B is", "A", "B", "change", "bounds", "serving and accuracy"});
  for (const CaseVerdict& verdict : side_by_side.numbers) {
    const LatencyCells cells = latency_cells(verdict);
    table.add({number_outcome(verdict), cells.baseline, cells.result, cells.ratio, cells.interval,
               verdict.number ? verdict.id : verdict.id + " (" + verdict.sentence() + ")"});
  }
  std::string text = "\n" + table.str();
  for (const std::string& mean : side_by_side.means) text += mean + "\n";
  return text;
}

}  // namespace

std::string text_report(const SideBySide& side_by_side, const ReportTitle& title) {
  TextTable table(
      {Align::left, Align::right, Align::right, Align::right, Align::left, Align::left});
  table.add({"B is", "A", "B", "B / A", "interval", "case"});
  for (const ComparedCase& c : side_by_side.cases) {
    table.add({std::string(to_string(c.change)), format_us(c.a_us), format_us(c.b_us),
               c.ratio ? format_ratio(c.ratio->ratio) : "-",
               c.ratio ? format_interval(c.ratio->low, c.ratio->high) : "-",
               c.note.empty() ? c.id : c.id + " (" + c.note + ")"});
  }
  std::string text = "A = " + title.baseline + "\nB = " + title.result + "\n";
  if (!side_by_side.cases.empty() || side_by_side.numbers.empty()) text += "\n" + table.str();
  if (side_by_side.geometric_mean_ratio) {
    text += "geometric mean of B / A: " + format_ratio(*side_by_side.geometric_mean_ratio) + "\n";
  }
  return text + rivals_table(side_by_side.rivals_a, "A") +
         rivals_table(side_by_side.rivals_b, "B") + numbers_table(side_by_side);
}

}  // namespace moegauge
