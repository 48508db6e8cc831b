#include "harness/endtoend/pasted_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <system_error>
#include <utility>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {

std::vector<PastedLine> pasted_lines(const std::string& text) {
  std::vector<PastedLine> lines;
  std::stringstream stream(text);
  std::int64_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    while (line.ends_with('\r')) line.pop_back();
    if (const auto over = line.rfind('\r'); over != std::string::npos) line.erase(0, over + 1);
    lines.push_back({std::move(line), ++number});
  }
  return lines;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<double> number_or_absent(const std::string& text, const std::string& what,
                                       const std::string& place) {
  const std::string cell = trimmed(text), word = lower_case(cell);
  if (cell.empty() || cell == "-" || word == "n/a" || word == "nan") return std::nullopt;
  const bool percent = cell.ends_with('%');
  // The exponent divides without a rounding of its own.
  const auto value = number_in(percent ? cell.substr(0, cell.size() - 1) + "e-2" : cell);
  if (!value)
    throw InputError(place, in_quotes(cell) + " is no number", what + " is expected there");
  return value;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::string text = trimmed(line);
  char between = '\t';
  if (text.starts_with('|')) {
    between = '|';
    text = text.substr(1, text.size() - (text.ends_with('|') && text.size() > 1 ? 2 : 1));
  } else if (line.find('\t') == std::string::npos) {
    return {};
  } else {
    text = line;  // a blank first cell matters
  }
  std::vector<std::string> cells;
  std::stringstream stream(text);
  for (std::string cell; std::getline(stream, cell, between);) cells.push_back(trimmed(cell));
  if (text.ends_with(between)) cells.emplace_back();  // getline ends before a blank last cell
  return cells;
}

bool is_rule(const std::vector<std::string>& cells) {
  return std::ranges::all_of(cells, [](const std::string& cell) {
    return !cell.empty() && cell.find_first_not_of("-:") == std::string::npos;
  });
}

}  // namespace moegauge
