// Lines, cells and numbers of pasted text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace moegauge {

struct PastedLine {
  std::string text = {};
  std::int64_t number = 0;  // from 1
};

// Of a line that a progress bar wrote over itself what stood there last.
std::vector<PastedLine> pasted_lines(const std::string& text);

std::string trimmed(const std::string& text);
std::string lower_case(std::string text);

// A finite decimal number that is the whole text.
std::optional<double> number_in(const std::string& text);
// None for what tools write where there is no number: nothing, "-", "N/A", "nan". "83.24%" is
// 0.8324. Throws InputError at `place` for anything else.
std::optional<double> number_or_absent(const std::string& text, const std::string& what,
                                       const std::string& place);

// Cells of a Markdown table's line, or of one with tabs; none for other lines.
std::vector<std::string> cells_of(const std::string& line);
// The line under a Markdown table's head.
bool is_rule(const std::vector<std::string>& cells);

}  // namespace moegauge
