#include "harness/json/nearest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reference/base/edit_distance.h"

namespace moegauge {
namespace {

// A very long name is no slip of a short one, and its distance would be slow to compute.
constexpr std::size_t longest_compared = 256;

// About one edit in three letters: a typing slip, as opposed to another word.
bool is_slip(std::size_t distance, std::string_view candidate) {
  return distance <= std::max<std::size_t>(1, (candidate.size() + 1) / 3);
}

struct Ranked {
  std::size_t distance = 0;
  std::string name = {};
};

std::vector<Ranked> rank(std::string_view name, std::span<const std::string> candidates) {
  std::vector<Ranked> ranked;
  if (name.size() > longest_compared) return ranked;
  for (const auto& candidate : candidates) {
    ranked.push_back({.distance = edit_distance(name, candidate), .name = candidate});
  }
  std::ranges::stable_sort(ranked, {}, &Ranked::distance);
  return ranked;
}

}  // namespace

std::vector<std::string> similar_names(std::string_view name,
                                       std::span<const std::string> candidates, std::size_t limit) {
  std::vector<std::string> names;
  for (const auto& entry : rank(name, candidates)) {
    const bool contains = !name.empty() && entry.name.find(name) != std::string::npos;
    const bool similar = contains || entry.distance * 2 <= entry.name.size();
    if (similar && names.size() < limit) names.push_back(entry.name);
  }
  return names;
}

std::string suggestion(std::string_view name, std::span<const std::string> candidates) {
  const auto ranked = rank(name, candidates);
  if (!ranked.empty() && is_slip(ranked.front().distance, ranked.front().name)) {
    return "did you mean " + in_quotes(ranked.front().name) + "?";
  }
  return candidates.empty() ? "" : "known: " + joined(candidates);
}

std::string joined(std::span<const std::string> names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 120;
  const nlohmann::json text =
      std::string(name.substr(0, longest)) + (name.size() > longest ? "..." : "");
  return text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace moegauge
