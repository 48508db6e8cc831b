// Text that may hold anything, made safe for one output format. All take UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace moegauge {

// Shown as it is within a Markdown paragraph or table cell, on one line.
std::string escape_markdown(std::string_view text);
// A code span. Within a table cell even code must escape `|` (GitHub Flavored Markdown, 4.10).
enum class MarkdownPlace { paragraph, table_cell };
std::string markdown_code(std::string_view text, MarkdownPlace place);
// Element content or attribute value. Characters that XML 1.0 cannot hold become U+FFFD.
std::string escape_xml(std::string_view text);
// The data and the properties of a GitHub workflow command (`::error title=PROPERTY::DATA`).
std::string escape_github_data(std::string_view text);
std::string escape_github_property(std::string_view text);

}  // namespace moegauge
