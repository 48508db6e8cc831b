#include "harness/suite/select.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "harness/json/nearest.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

std::int64_t parse_tokens(std::string_view text, const std::string& where) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max_tokens) {
    throw InputError(
        where, in_quotes(text) + " is no batch size",
        "write integers from 0 to " + std::to_string(max_tokens) + ", e.g. 1,4,16 or 1-4096*2");
  }
  return value;
}

// "FIRST-LAST*FACTOR" or one number.
void append_range(std::string_view text, const std::string& where, std::vector<std::int64_t>& out) {
  const auto dash = text.find('-');
  const auto star = text.find('*');
  if (dash == std::string_view::npos || star == std::string_view::npos || star < dash) {
    out.push_back(parse_tokens(text, where));
    return;
  }
  const auto first = parse_tokens(text.substr(0, dash), where);
  const auto last = parse_tokens(text.substr(dash + 1, star - dash - 1), where);
  const auto factor = parse_tokens(text.substr(star + 1), where);
  if (first < 1 || last < first || factor < 2) {
    throw InputError(where, in_quotes(text) + " is an empty or endless range",
                     "write FIRST-LAST*FACTOR with 1 <= FIRST <= LAST and FACTOR >= 2");
  }
  for (auto value = first; value <= last; value *= factor) out.push_back(value);
}

}  // namespace

bool matches_glob(const std::string& glob, const std::string& id) {
  return ::fnmatch(glob.c_str(), id.c_str(), 0) == 0;
}

std::vector<CaseCoordinates> filter_cases(const std::vector<CaseCoordinates>& cases,
                                          const std::string& glob) {
  std::vector<CaseCoordinates> kept;
  std::ranges::copy_if(cases, std::back_inserter(kept),
                       [&](const auto& c) { return matches_glob(glob, case_id(c)); });
  return kept;
}

std::vector<std::int64_t> parse_token_list(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    append_range(text.substr(begin, comma - begin), where, tokens);
    begin = comma + 1;
  }
  std::set<std::int64_t> seen;
  for (const auto value : tokens) {
    if (!seen.insert(value).second) {
      throw InputError(where, std::to_string(value) + " is given twice",
                       "give each batch size once");
    }
  }
  return tokens;
}

std::vector<CaseCoordinates> override_tokens(const std::vector<CaseCoordinates>& cases,
                                             const std::vector<std::int64_t>& tokens) {
  // Cases of one point stay adjacent: first the points without tokens in order of appearance, each
  // with its members, then every batch size over all members of the point.
  std::vector<std::string> points;
  std::vector<std::vector<CaseCoordinates>> members;
  std::set<std::string> seen;
  for (CaseCoordinates c : cases) {
    c.tokens = 0;
    if (!seen.insert(case_id(c)).second) continue;
    const auto at = std::ranges::find(points, point_id(c)) - points.begin();
    if (static_cast<std::size_t>(at) == points.size()) {
      points.push_back(point_id(c));
      members.emplace_back();
    }
    members[static_cast<std::size_t>(at)].push_back(std::move(c));
  }
  std::vector<CaseCoordinates> out;
  for (const auto& rivals : members) {
    for (const auto count : tokens) {
      for (CaseCoordinates c : rivals) {
        c.tokens = count;
        out.push_back(std::move(c));
      }
    }
  }
  return out;
}

}  // namespace moegauge
