#include <algorithm>

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

// A reason may hold what a kernel printed.
std::string shortened(const std::string& sentence) {
  constexpr std::size_t most = 2000;
  if (sentence.size() <= most) return sentence;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(sentence[end]) & 0xC0) == 0x80) --end;
  return sentence.substr(0, end) + " ... (the JUnit report has all of it)";
}

std::string bullet(const CaseVerdict& verdict) {
  std::string text = "- **" + std::string(to_string(verdict.verdict)) + "** " +
                     markdown_code(verdict.id, MarkdownPlace::paragraph) + "\n";
  for (const Finding& finding : verdict.findings) {
    if (!needs_person(finding.verdict)) continue;
    text += "  - " + escape_markdown(shortened(finding.sentence())) + "\n";
  }
  for (const std::string& change : verdict.changes) {
    text += "  - changed: " + escape_markdown(shortened(change)) + "\n";
  }
  return text;
}

// What a comment on GitHub takes is 65536 characters; a part of a comment may be somebody's own.
constexpr std::size_t most_bytes = 60'000;

// Parts while there is room for them: after the first that does not fit, none, so that what is left
// out is the least bad.
class Room {
 public:
  explicit Room(std::size_t bytes) : left_(bytes) {}
  bool take(std::size_t bytes) {
    if (bytes > left_) left_ = 0;
    left_ -= std::min(bytes, left_);
    return left_ > 0;
  }

 private:
  std::size_t left_;
};

std::string and_more(std::size_t count, const char* what) {
  return count == 0 ? ""
                    : "... and " + std::to_string(count) + " more " + what +
                          ", left out here: the output of the command and the JUnit report have "
                          "them\n\n";
}

// Notes and means, as many as fit.
std::string closing_lines(const Judgement& judgement, Room& room) {
  std::string text;
  std::size_t left_out = 0;
  const auto add = [&](const std::string& line) {
    if (room.take(line.size())) {
      text += line;
    } else {
      ++left_out;
    }
  };
  if (judgement.geometric_mean_ratio) {
    add("Geometric mean of the ratios (shown, never judged): " +
        format_ratio(*judgement.geometric_mean_ratio) + "\n");
  }
  for (const std::string& note : judgement.notes)
    add("\nNote: " + escape_markdown(shortened(note)) + "\n");
  for (const std::string& note : judgement.means)
    add("\n" + escape_markdown(shortened(note)) + "\n");
  return text + (left_out > 0 ? "\n" + and_more(left_out, "notes") : "");
}

std::string title_line(const char* heading, const ReportTitle& title) {
  return std::string("### ") + heading + ": " +
         markdown_code(shortened(title.result), MarkdownPlace::paragraph) + " against " +
         markdown_code(shortened(title.baseline), MarkdownPlace::paragraph) + "\n\n";
}

}  // namespace

std::string markdown_report(const Judgement& judgement, const ReportTitle& title) {
  std::string text = title_line("moegauge gate", title) + "**" + conclusion(judgement) +
                     "** (policy " + escape_markdown(shortened(judgement.policy)) + ")\n\n";
  // For what joins the parts.
  constexpr std::size_t frame = 1000, for_closing = 10'000;
  Room closing_room(for_closing);
  const std::string closing = closing_lines(judgement, closing_room);
  Room room(most_bytes - frame - text.size() - closing.size());

  std::string open_cases, bullets, closed_cases;
  std::size_t open_left_out = 0, closed = 0, closed_left_out = 0;
  for (const CaseVerdict* verdict : worst_first(judgement)) {
    const bool is_open = needs_person(verdict->verdict);
    const std::string row = table_row(*verdict);
    const std::string more = needs_person(*verdict) ? bullet(*verdict) : "";
    closed += is_open ? 0 : 1;
    if (!room.take(row.size() + more.size())) {
      ++(is_open ? open_left_out : closed_left_out);
      continue;
    }
    (is_open ? open_cases : closed_cases) += row;
    bullets += more;
  }
  if (!open_cases.empty()) text += table_head + open_cases + "\n";
  text += and_more(open_left_out, "that need a person");
  if (!bullets.empty()) text += bullets + "\n";
  if (closed > 0) {
    text += "<details><summary>" + std::to_string(closed) +
            (closed == 1 ? " case needs" : " cases need") + " nobody</summary>\n\n";
    if (!closed_cases.empty()) text += table_head + closed_cases + "\n";
    text += and_more(closed_left_out, "of these") + "</details>\n\n";
  }
  return text + closing;
}

namespace {

std::string numbers_table(const SideBySide& side_by_side, Room& room) {
  if (side_by_side.numbers.empty()) return "";
  std::string text =
      "\nServing and accuracy:\n\n| B is | before (A) | now (B) | change | bounds | number | |\n"
      "|---|---:|---:|---:|---|---|---|\n";
  std::size_t left_out = 0;
  for (const CaseVerdict& verdict : side_by_side.numbers) {
    const LatencyCells cells = latency_cells(verdict);
    const std::string row =
        "| " + number_outcome(verdict) + " | " + cells.baseline + " | " + cells.result + " | " +
        cells.ratio + " | " + cells.interval + " | " + code_cell(verdict.id) + " | " +
        (verdict.number ? "" : escape_markdown(shortened(verdict.sentence()))) + " |\n";
    if (room.take(row.size())) {
      text += row;
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) text += "\n" + and_more(left_out, "numbers");
  for (const std::string& mean : side_by_side.means) {
    const std::string line = "\n" + escape_markdown(shortened(mean)) + "\n";
    if (room.take(line.size())) text += line;
  }
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
  Room room(most_bytes - 1000 - text.size());
  std::size_t left_out = 0;
  for (const ComparedCase& c : side_by_side.cases) {
    const std::string row = "| " + std::string(to_string(c.change)) + " | " + format_us(c.a_us) +
                            " | " + format_us(c.b_us) + " | " +
                            (c.ratio ? format_ratio(c.ratio->ratio) : "-") + " | " +
                            (c.ratio ? format_interval(c.ratio->low, c.ratio->high) : "-") + " | " +
                            code_cell(c.id) + " | " + escape_markdown(shortened(c.note)) + " |\n";
    if (room.take(row.size())) {
      text += row;
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) text += "\n" + and_more(left_out, "cases");
  if (side_by_side.geometric_mean_ratio) {
    text += "\nGeometric mean of B / A: " + format_ratio(*side_by_side.geometric_mean_ratio) + "\n";
  }
  for (const auto* rivals : {&side_by_side.rivals_a, &side_by_side.rivals_b}) {
    if (rivals->empty()) continue;
    text += std::string("\nRivals within ") + (rivals == &side_by_side.rivals_a ? "A" : "B") +
            ", measured in turn:\n\n| first is | ratio | interval | first | second |\n"
            "|---|---:|---|---|---|\n";
    std::size_t rivals_left_out = 0;
    for (const ComparedRivals& r : *rivals) {
      const Comparison& c = r.measured;
      const std::string row = "| " + std::string(to_string(r.change)) + " | " +
                              format_ratio(c.ratio) + " | " + format_interval(c.ci_low, c.ci_high) +
                              " | " + code_cell(c.a) + " | " + code_cell(c.b) + " |\n";
      if (room.take(row.size())) {
        text += row;
      } else {
        ++rivals_left_out;
      }
    }
    if (rivals_left_out > 0) text += "\n" + and_more(rivals_left_out, "pairs");
  }
  return text + numbers_table(side_by_side, room);
}

}  // namespace moegauge
