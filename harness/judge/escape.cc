#include "harness/judge/escape.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace moegauge {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// Bytes that are no UTF-8 (of a file's name) become U+FFFD, by the JSON writer's rules.
std::string valid_utf8(std::string_view text) {
  using Json = nlohmann::json;
  const std::string quoted =
      Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

// U+FFFE and U+FFFF are characters of UTF-8 and none of XML 1.0 (section 2.2).
bool is_noncharacter(std::string_view text) {
  return text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
}

}  // namespace

std::string escape_markdown(std::string_view text) {
  // CommonMark: a backslash before ASCII punctuation makes it itself. Only what can start markup
  // within a line is escaped, for the raw text's sake.
  constexpr std::string_view special = "\\`*_{}[]<>#|~&$";
  std::string out;
  for (const char c : text) {
    if (is_control(c)) {
      out += ' ';
      continue;
    }
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
    // A backslash does not keep GitHub from notifying a person, a zero-width space does.
    if (c == '@') out += "\xE2\x80\x8B";
  }
  return out;
}

std::string markdown_code(std::string_view text, MarkdownPlace place) {
  std::string content;
  std::size_t run = 0, longest_run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest_run = std::max(longest_run, run);
    if (c == '|' && place == MarkdownPlace::table_cell) content += '\\';
    content += is_control(c) ? ' ' : c;
  }
  // CommonMark: the fence is longer than any run inside; one space next to it is stripped.
  const std::string fence(longest_run + 1, '`');
  const std::string space = longest_run > 0 ? " " : "";
  return fence + space + content + space + fence;
}

std::string escape_xml(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const char c = valid[i];
    if (is_noncharacter(std::string_view(valid).substr(i))) {
      out += replacement;
      i += 2;
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&apos;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += replacement;
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string escape_github_data(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_github_property(std::string_view text) {
  std::string out;
  for (const char c : escape_github_data(text)) {
    switch (c) {
      case ':':
        out += "%3A";
        break;
      case ',':
        out += "%2C";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace moegauge
