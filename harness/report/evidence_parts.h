// The parts of an evidence page; evidence_page.cc puts them together and keeps it small.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/report/rows.h"

namespace moegauge {

// A table, or several, of which the first rows matter most.
struct EvidenceSection {
  std::string title = {};
  std::string intro = {};                // above the table
  std::string head = {};                 // of the table; empty where each block has its own
  std::vector<std::string> blocks = {};  // rows, or whole tables with their headings; worst first
  std::size_t open = 12;                 // blocks before the fold
  const char* noun = "rows";             // what a block is, several of them
};

// Cells and names come from files: escaped, on one line, and cut where they are long.
inline constexpr std::size_t cell_bytes = 320, short_cell_bytes = 90, sentence_bytes = 200;
std::string evidence_cell(const std::string& text, std::size_t most = cell_bytes);
std::string evidence_code(const std::string& text, std::size_t most = cell_bytes);
std::string table_line(const std::vector<std::string>& cells);
// "| a | b |" and the line under it; a title that begins with '>' is aligned right.
std::string table_head(const std::vector<std::string>& titles);

EvidenceSection verdict_section(const std::vector<Judgement>& judgements);
EvidenceSection latency_section(const ReportRows& rows);
EvidenceSection kernel_section(const std::vector<Judgement>& judgements);
EvidenceSection error_section(const ReportRows& rows);
EvidenceSection status_section(const ReportRows& rows);
EvidenceSection serving_section(const ReportInput& input, const std::vector<Judgement>& judgements);
EvidenceSection accuracy_section(const ReportInput& input,
                                 const std::vector<Judgement>& judgements);

// What the page does not show, a sentence each.
std::vector<std::string> honest_gaps(const ReportInput& input, const ReportRows& rows);
// Commands that make the same files and the same verdict again.
std::vector<std::string> commands_to_repeat(const ReportInput& input,
                                            const std::vector<Judgement>& judgements);

}  // namespace moegauge
