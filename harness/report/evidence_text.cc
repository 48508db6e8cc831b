// Text of evidence pages that is safe and short, whatever stands in a file.
#include "harness/judge/escape.h"
#include "harness/report/evidence_parts.h"

namespace moegauge {
namespace {

// On a character's border: the bytes 10xxxxxx go on with one.
std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

std::string evidence_cell(const std::string& text, std::size_t most) {
  // Escaping makes text longer, so that it is looked at again.
  const std::string escaped = escape_markdown(cut(text, most));
  return escaped.size() <= 2 * most ? escaped : escape_markdown(cut(text, most / 3));
}

std::string evidence_code(const std::string& text, std::size_t most) {
  return markdown_code(cut(text, most), MarkdownPlace::table_cell);
}

std::string table_line(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string table_head(const std::vector<std::string>& titles) {
  std::string head = "|", rule = "|";
  for (const std::string& title : titles) {
    const bool right = title.starts_with('>');
    head += " " + title.substr(right ? 1 : 0) + " |";
    rule += right ? "---:|" : "---|";
  }
  return head + "\n" + rule + "\n";
}

}  // namespace moegauge
