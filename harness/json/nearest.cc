#include "harness/json/nearest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace moegauge {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// A typing slip, as opposed to another word: about one edit in three letters.
bool is_slip(std::string_view name, std::string_view candidate) {
  return edit_distance(name, candidate) <= std::max<std::size_t>(1, (candidate.size() + 1) / 3);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates, std::size_t limit) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& candidate : candidates)
    ranked.emplace_back(edit_distance(name, candidate), candidate);
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  ranked.resize(std::min(limit, ranked.size()));
  std::vector<std::string> names;
  for (auto& entry : ranked) names.push_back(std::move(entry.second));
  return names;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  if (candidates.empty()) return "";
  // A very long name is no slip of a short one, and its distance would be slow to compute.
  if (name.size() <= 256) {
    const std::string best = nearest_names(name, candidates, 1).front();
    if (is_slip(name, best)) return "did you mean " + in_quotes(best) + "?";
  }
  std::string list;
  for (const auto& candidate : candidates) list += (list.empty() ? "known: " : ", ") + candidate;
  return list;
}

std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 120;
  const nlohmann::json text =
      std::string(name.substr(0, longest)) + (name.size() > longest ? "..." : "");
  return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace moegauge
