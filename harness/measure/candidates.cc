#include "harness/measure/candidates.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

namespace moegauge {
namespace {

// As opposed to what this machine, or this build, lacks. A backend names rules first.
bool is_by_rule(const Refusal& refusal) {
  return refusal.reason != RefusalReason::device_absent &&
         refusal.reason != RefusalReason::memory &&
         refusal.reason != RefusalReason::instruction_set;
}

using Refuses = std::function<std::optional<Refusal>(const Backend&)>;

Candidate candidate_for(const Refuses& refuses, const Backend& backend, bool none_chosen_yet) {
  const Availability availability = backend.availability();
  Candidate candidate{.backend = &backend, .why = availability.detail};
  if (!availability.present) {
    candidate.remedy = availability.remedy;
    const auto refusal = refuses(backend);
    if (refusal && is_by_rule(*refusal)) {  // getting the device would not help
      candidate.reason = to_string(refusal->reason);
      candidate.why += "; and if it were here: " + refusal->sentence;
      candidate.remedy.clear();
    }
    return candidate;
  }
  if (const auto refusal = refuses(backend)) {
    candidate.standing = Standing::refuses;
    candidate.reason = std::string(to_string(refusal->reason));
    candidate.why = refusal->sentence;
    return candidate;
  }
  candidate.standing = none_chosen_yet ? Standing::chosen : Standing::would_also_serve;
  return candidate;
}

std::optional<Refusal> refuses_on(const ArchFamily& family, const Problem& problem,
                                  const Backend& backend) {
  if (backend.name() != family.backend || !family.has_kernels) {
    return Refusal{RefusalReason::instruction_set,
                   "this version has no kernels of it for " + std::string(family.name)};
  }
  // OCP weights can be made FNUZ when they are loaded; the other way round no kernel helps.
  const auto obstacle = operand_obstacle(family, problem.scheme->traits());
  if (obstacle && problem.scheme->traits().weight.element == Element::e4m3fnuz)
    return Refusal{RefusalReason::scheme, *obstacle};
  return backend.refuses_on(family.name, problem);
}

std::vector<Candidate> candidates(const Refuses& refuses, std::span<const Backend* const> backends,
                                  std::string_view wanted) {
  std::vector<Candidate> all;
  for (const Backend* backend : backends) {
    if (wanted != "auto" && backend->name() != wanted) continue;
    all.push_back(candidate_for(refuses, *backend, chosen_of(all) == nullptr));
  }
  return all;
}

}  // namespace

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::chosen:
      return "chosen";
    case Standing::would_also_serve:
      return "would also serve";
    case Standing::refuses:
      return "refuses";
    case Standing::absent:
      return "absent";
  }
  throw std::logic_error("standing out of range");
}

std::vector<Candidate> candidates_for(const Problem& problem,
                                      std::span<const Backend* const> backends,
                                      std::string_view wanted) {
  return candidates([&](const Backend& backend) { return backend.refuses(problem); }, backends,
                    wanted);
}

std::vector<Candidate> candidates_for(const OpProblem& problem,
                                      std::span<const Backend* const> backends,
                                      std::string_view wanted) {
  return candidates([&](const Backend& backend) { return backend.refuses_op(problem); }, backends,
                    wanted);
}

std::vector<Candidate> candidates_on(const ArchFamily& family, const Problem& problem,
                                     std::span<const Backend* const> backends) {
  std::vector<Candidate> candidates;
  for (const Backend* backend : backends) {
    Candidate candidate{.backend = backend};
    if (const auto refusal = refuses_on(family, problem, *backend)) {
      candidate.standing = Standing::refuses;
      candidate.reason = to_string(refusal->reason);
      candidate.why = refusal->sentence;
    } else {
      candidate.standing =
          chosen_of(candidates) == nullptr ? Standing::chosen : Standing::would_also_serve;
      candidate.why = "kernels for " + std::string(family.name);
      if (!family.proven.empty()) candidate.why += ", " + std::string(family.proven);
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

const Backend* chosen_of(std::span<const Candidate> candidates) {
  const auto chosen = std::ranges::find(candidates, Standing::chosen, &Candidate::standing);
  return chosen == candidates.end() ? nullptr : chosen->backend;
}

}  // namespace moegauge
