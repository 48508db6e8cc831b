#include "harness/report/evidence_page.h"

#include <algorithm>
#include <numeric>

#include "harness/report/evidence_parts.h"
#include "harness/report/summary.h"

namespace moegauge {
namespace {

constexpr std::size_t most_files = 8;
constexpr std::size_t most_sentences = 16;

std::size_t size_of(const std::vector<std::string>& blocks, std::size_t count) {
  return std::accumulate(
      blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(count), std::size_t{0},
      [](std::size_t sum, const std::string& block) { return sum + block.size(); });
}

std::string left_out(const EvidenceSection& section, std::size_t count) {
  if (count == 0) return "";
  return "\n" + std::to_string(count) + " of " + std::to_string(section.blocks.size()) + " " +
         section.noun +
         " are left out, so that this page stays small; the worst are shown, and `moegauge report` "
         "shows all.\n";
}

// The first `shown` blocks, those after the first few folded away.
std::string rendered(const EvidenceSection& section, std::size_t shown) {
  if (section.blocks.empty() && section.intro.empty()) return "";
  std::string text = "\n## " + section.title + "\n\n";
  if (!section.intro.empty()) text += section.intro + "\n\n";
  const auto put = [&](std::size_t from, std::size_t to) {
    text += section.head;
    for (std::size_t i = from; i < to; ++i) text += section.blocks[i];
  };
  const std::size_t open = std::min(section.open, shown);
  if (open > 0) put(0, open);
  if (shown > open) {
    text += "\n<details><summary>" + std::to_string(shown - open) + " more</summary>\n\n";
    put(open, shown);
    text += "\n</details>\n";
  }
  return text + left_out(section, section.blocks.size() - shown);
}

// What a section takes besides its blocks, at most.
std::size_t frame_of(const EvidenceSection& section) {
  EvidenceSection empty = section;
  empty.blocks.clear();
  return rendered(empty, 0).size() + 2 * section.head.size() + 400;
}

std::size_t blocks_within(const EvidenceSection& section, std::size_t bytes) {
  std::size_t count = 0, sum = 0;
  while (count < section.blocks.size() && sum + section.blocks[count].size() <= bytes)
    sum += section.blocks[count++].size();
  return count;
}

// Sections that need little leave the rest to the others.
std::vector<std::size_t> shares(const std::vector<EvidenceSection>& sections, std::size_t bytes) {
  std::vector<std::size_t> order(sections.size()), share(sections.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto need = [&](std::size_t i) {
    return size_of(sections[i].blocks, sections[i].blocks.size());
  };
  std::ranges::sort(order, {}, need);
  for (std::size_t at = 0; at < order.size(); ++at) {
    share[order[at]] = std::min(need(order[at]), bytes / (order.size() - at));
    bytes -= share[order[at]];
  }
  return share;
}

std::string list_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (std::size_t i = 0; i < std::min(sentences.size(), most_sentences); ++i)
    text += "- " + evidence_cell(sentences[i], sentence_bytes) + "\n";
  if (sentences.size() > most_sentences)
    text += "- and " + std::to_string(sentences.size() - most_sentences) + " more\n";
  return text;
}

std::string compared(const ReportSummary& summary) {
  std::string text = "\n## What was compared\n\n" +
                     table_head({"file", "date", "device", "suite", "moegauge", ">cases ok",
                                 ">serving and "
                                 "accuracy rows"});
  const std::size_t files = std::min(summary.machines.size(), most_files);
  for (std::size_t i = 0; i < files; ++i) {
    const MachineLine& line = summary.machines[i];
    const auto cell = [](const std::string& part) { return evidence_cell(part, short_cell_bytes); };
    text += table_line({evidence_code(line.file, short_cell_bytes), cell(line.date),
                        cell(line.devices), cell(line.suite), cell(line.version),
                        std::to_string(line.ok) + " of " + std::to_string(line.cases),
                        std::to_string(line.rows)});
  }
  if (summary.machines.size() > files)
    text += "\n" + std::to_string(summary.machines.size() - files) + " more files.\n";
  std::vector<std::string> notes = summary.warnings;
  for (const std::string& change : summary.changes)
    notes.push_back("Changed since the baseline: " + change);
  return notes.empty() ? text : text + "\n" + list_of(notes);
}

std::string top(const ReportInput& input, const std::vector<Judgement>& judgements) {
  const ReportSummary summary = summary_of(input, judgements);
  std::string text = "# Evidence\n\n**" + evidence_cell(summary.sentence) + "**";
  if (!judgements.empty()) text += " (policy " + evidence_cell(input.policy.name) + ")";
  text += "\n" + compared(summary);
  std::vector<std::string> notes;
  for (const Judgement& judgement : judgements)
    notes.insert(notes.end(), judgement.means.begin(), judgement.means.end());
  for (const Judgement& judgement : judgements)
    notes.insert(notes.end(), judgement.notes.begin(), judgement.notes.end());
  return notes.empty() ? text : text + "\n" + list_of(notes);
}

std::string bottom(const ReportInput& input, const ReportRows& rows,
                   const std::vector<Judgement>& judgements) {
  std::string text =
      "\n## How to repeat it\n\nAs far as the files tell: they do not hold a run's own `--filter` "
      "or "
      "`--tokens`.\n\n```sh\n";
  for (const std::string& command : commands_to_repeat(input, judgements)) text += command + "\n";
  return text + "```\n\n## What this does not show\n\n" + list_of(honest_gaps(input, rows));
}

}  // namespace

std::string evidence_page(const ReportInput& input, const std::vector<Judgement>& judgements) {
  const ReportRows rows = rows_of(input, judgements);
  const std::vector<EvidenceSection> sections = {verdict_section(judgements),
                                                 latency_section(rows),
                                                 kernel_section(judgements),
                                                 error_section(rows),
                                                 status_section(rows),
                                                 serving_section(input, judgements),
                                                 accuracy_section(input, judgements)};
  std::string text = top(input, judgements);
  const std::string end = bottom(input, rows, judgements);
  std::size_t fixed = text.size() + end.size();
  for (const EvidenceSection& section : sections) fixed += frame_of(section);
  const std::size_t free = evidence_page_bytes > fixed ? evidence_page_bytes - fixed : 0;
  const std::vector<std::size_t> share = shares(sections, free);
  for (std::size_t i = 0; i < sections.size(); ++i)
    text += rendered(sections[i], blocks_within(sections[i], share[i]));
  return text + end;
}

}  // namespace moegauge
