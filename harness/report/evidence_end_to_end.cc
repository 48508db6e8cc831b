// Sections of an evidence page on serving and accuracy.
#include <algorithm>

#include "harness/judge/numbers.h"
#include "harness/judge/report_parts.h"
#include "harness/report/evidence_parts.h"

namespace moegauge {
namespace {

std::vector<std::string> judged_cells(const CaseVerdict& verdict) {
  const LatencyCells cells = latency_cells(verdict);
  const bool suspect = verdict.number && !verdict.number->suspect.empty();
  return {std::string(to_string(verdict.verdict)) + (suspect ? ", suspect" : ""),
          evidence_cell(cells.result),
          evidence_cell(cells.baseline),
          evidence_cell(cells.ratio),
          evidence_cell(cells.interval),
          evidence_code(verdict.id)};
}

// Verdicts on serving (relative) or on scores, worst first within each file.
void add_judged(const std::vector<Judgement>& judgements, bool relative, EvidenceSection& section) {
  for (const Judgement& judgement : judgements) {
    for (const CaseVerdict* verdict : worst_first(judgement)) {
      if (verdict->number && verdict->number->relative == relative)
        section.blocks.push_back(table_line(judged_cells(*verdict)));
    }
  }
}

std::string numbers_text(const EndToEndRow& row) {
  std::string text;
  for (const auto& [name, value] : row.numbers)
    text += (text.empty() ? "" : ", ") + name + " " + format_plain(value);
  return text;
}

void add_rows(const ReportInput& input, const std::string& op, EvidenceSection& section) {
  for (const ReportFile& file : input.files) {
    for (const EndToEndRow& row : file.result.end_to_end) {
      if (row.op != op) continue;
      section.blocks.push_back(table_line({evidence_code(row.point()), evidence_cell(row.variant()),
                                           evidence_cell(numbers_text(row))}));
    }
  }
}

EvidenceSection section_of(const char* title, const std::string& op, bool relative,
                           const ReportInput& input, const std::vector<Judgement>& judgements) {
  EvidenceSection section{.title = title, .open = 24};
  add_judged(judgements, relative, section);
  if (!section.blocks.empty()) {
    section.head = table_head({"verdict", ">result", ">baseline", ">change",
                               relative ? "" : "one-sided bounds", relative ? "point" : "score"});
    return section;
  }
  add_rows(input, op, section);
  section.head = table_head({"point", "variant", "numbers"});
  return section;
}

}  // namespace

EvidenceSection serving_section(const ReportInput& input,
                                const std::vector<Judgement>& judgements) {
  return section_of("Serving", "serve", true, input, judgements);
}

EvidenceSection accuracy_section(const ReportInput& input,
                                 const std::vector<Judgement>& judgements) {
  return section_of("Accuracy", "eval", false, input, judgements);
}

}  // namespace moegauge
