#include "harness/tune/key_plan.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace moegauge {
namespace {

// A file's keys are those that candidates have: the rest is the machine's business (threads), and
// the default's wherever the file is read.
Config in_keys_of(const Config& config, const std::vector<Config>& candidates) {
  std::set<std::string> keys;
  for (const Config& candidate : candidates) {
    for (const auto& [key, value] : candidate.values) keys.insert(key);
  }
  Config kept;
  for (const auto& [key, value] : config.values) {
    if (keys.contains(key)) kept.values[key] = value;
  }
  return kept;
}

}  // namespace

Config whole_config(const Backend& backend, const Problem& problem, const Config& config) {
  Config whole = backend.default_config(problem);
  for (const auto& [key, value] : config.values) whole.values[key] = value;
  return whole;
}

KeyPlan plan_key(const Backend& backend, const Problem& problem, const ConfigTable* base,
                 std::size_t max_candidates) {
  const std::vector<Config> stated = backend.candidate_configs(problem);
  const Config standard = backend.default_config(problem);
  KeyPlan plan{.tokens = problem.tokens, .standard = in_keys_of(standard, stated)};
  std::vector<Config> known = {standard};
  if (base != nullptr) {
    Config today = choose(*base, problem.tokens).config;
    plan.in_base = base->entries.contains(problem.tokens);
    known.push_back(whole_config(backend, problem, today));
    if (known.back() != standard) plan.incumbent = std::move(today);
  }
  for (const Config& candidate : stated) {
    Config whole = whole_config(backend, problem, candidate);
    if (std::ranges::find(known, whole) != known.end()) continue;
    known.push_back(std::move(whole));
    if (plan.candidates.size() < max_candidates) {
      plan.candidates.push_back(candidate);
    } else {
      ++plan.left_out;
    }
  }
  return plan;
}

}  // namespace moegauge
