#include "harness/judge/escape.h"
#include "harness/judge/numbers.h"
#include "harness/judge/report.h"
#include "harness/judge/report_parts.h"

namespace moegauge {
namespace {

constexpr const char* table_head =
    "| verdict | result | baseline | ratio | interval | case |\n"
    "|---|---:|---:|---:|---|---|\n";

std::string code_cell(const std::string& text) {
  return markdown_code(text, MarkdownPlace::table_cell);
}

std::string table_row(const CaseVerdict& verdict) {
  const LatencyCells cells = latency_cells(verdict);
  return "| " + std::string(to_string(verdict.verdict)) + " | " + cells.result + " | " +
         cells.baseline + " | " + cells.ratio + " | " + cells.interval + " | " +
         code_cell(verdict.id) + " |\n";
}

std::string bullet(const CaseVerdict& verdict) {
  std::string text = "- **" + std::string(to_string(verdict.verdict)) + "** " +
                     markdown_code(verdict.id, MarkdownPlace::paragraph) + "\n";
  for (const Finding& finding : verdict.findings) {
    if (needs_person(finding.verdict)) text += "  - " + escape_markdown(finding.sentence()) + "\n";
  }
  for (const std::string& change : verdict.changes) {
    text += "  - changed: " + escape_markdown(change) + "\n";
  }
  return text;
}

std::string title_line(const char* heading, const ReportTitle& title) {
  return std::string("### ") + heading + ": " +
         markdown_code(title.result, MarkdownPlace::paragraph) + " against " +
         markdown_code(title.baseline, MarkdownPlace::paragraph) + "\n\n";
}

}  // namespace

std::string markdown_report(const Judgement& judgement, const ReportTitle& title) {
  std::string open_cases, bullets, closed_cases;
  std::size_t closed = 0;
  for (const CaseVerdict* verdict : worst_first(judgement)) {
    if (needs_person(*verdict)) bullets += bullet(*verdict);
    if (needs_person(verdict->verdict)) {
      open_cases += table_row(*verdict);
    } else {
      closed_cases += table_row(*verdict);
      ++closed;
    }
  }
  std::string text = title_line("moegauge gate", title) + "**" + conclusion(judgement) +
                     "** (policy " + escape_markdown(judgement.policy) + ")\n\n";
  if (!open_cases.empty()) text += table_head + open_cases + "\n";
  if (!bullets.empty()) text += bullets + "\n";
  if (closed > 0) {
    text += "<details><summary>" + std::to_string(closed) +
            (closed == 1 ? " case needs" : " cases need") + " nobody</summary>\n\n" + table_head +
            closed_cases + "\n</details>\n\n";
  }
  for (const std::string& note : judgement.notes) text += "Note: " + escape_markdown(note) + "\n\n";
  if (judgement.geometric_mean_ratio) {
    text += "Geometric mean of the ratios (shown, never judged): " +
            format_ratio(*judgement.geometric_mean_ratio) + "\n";
  }
  for (const std::string& note : judgement.means) text += "\n" + escape_markdown(note) + "\n";
  return text;
}

namespace {

std::string numbers_table(const SideBySide& side_by_side) {
  if (side_by_side.numbers.empty()) return "";
  std::string text =
      "\nServing and accuracy:\n\n| B is | before (A) | now (B) | change | bounds | number | |\n"
      "|---|---:|---:|---:|---|---|---|\n";
  for (const CaseVerdict& verdict : side_by_side.numbers) {
    const LatencyCells cells = latency_cells(verdict);
    text += "| " + number_outcome(verdict) + " | " + cells.baseline + " | " + cells.result + " | " +
            cells.ratio + " | " + cells.interval + " | " + code_cell(verdict.id) + " | " +
            (verdict.number ? "" : escape_markdown(verdict.sentence())) + " |\n";
  }
  for (const std::string& mean : side_by_side.means) text += "\n" + escape_markdown(mean) + "\n";
  return text;
}

}  // namespace

std::string markdown_report(const SideBySide& side_by_side, const ReportTitle& title) {
  std::string text = title_line("moegauge compare", title);
  if (!side_by_side.cases.empty() || side_by_side.numbers.empty()) {
    text +=
        "| now | before (A) | now (B) | B / A | interval | case | |\n"
        "|---|---:|---:|---:|---|---|---|\n";
  }
  for (const ComparedCase& c : side_by_side.cases) {
    text += "| " + std::string(to_string(c.change)) + " | " + format_us(c.a_us) + " | " +
            format_us(c.b_us) + " | " + (c.ratio ? format_ratio(c.ratio->ratio) : "-") + " | " +
            (c.ratio ? format_interval(c.ratio->low, c.ratio->high) : "-") + " | " +
            code_cell(c.id) + " | " + escape_markdown(c.note) + " |\n";
  }
  if (side_by_side.geometric_mean_ratio) {
    text += "\nGeometric mean of B / A: " + format_ratio(*side_by_side.geometric_mean_ratio) + "\n";
  }
  for (const auto* rivals : {&side_by_side.rivals_a, &side_by_side.rivals_b}) {
    if (rivals->empty()) continue;
    text += std::string("\nRivals within ") + (rivals == &side_by_side.rivals_a ? "A" : "B") +
            ", measured in turn:\n\n| first is | ratio | interval | first | second |\n"
            "|---|---:|---|---|---|\n";
    for (const ComparedRivals& r : *rivals) {
      const Comparison& c = r.measured;
      text += "| " + std::string(to_string(r.change)) + " | " + format_ratio(c.ratio) + " | " +
              format_interval(c.ci_low, c.ci_high) + " | " + code_cell(c.a) + " | " +
              code_cell(c.b) + " |\n";
    }
  }
  return text + numbers_table(side_by_side);
}

}  // namespace moegauge
