#include "harness/measure/candidates.h"

#include <algorithm>
#include <stdexcept>

namespace moegauge {
namespace {

Candidate candidate_for(const Problem& problem, const Backend& backend, bool none_chosen_yet) {
  const Availability availability = backend.availability();
  Candidate candidate{.backend = &backend, .why = availability.detail};
  if (!availability.present) {
    candidate.remedy = availability.remedy;
    return candidate;
  }
  if (const auto refusal = backend.refuses(problem)) {
    candidate.standing = Standing::refuses;
    candidate.reason = std::string(to_string(refusal->reason));
    candidate.why = refusal->sentence;
    return candidate;
  }
  candidate.standing = none_chosen_yet ? Standing::chosen : Standing::would_also_serve;
  return candidate;
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
  std::vector<Candidate> candidates;
  for (const Backend* backend : backends) {
    if (wanted != "auto" && backend->name() != wanted) continue;
    candidates.push_back(candidate_for(problem, *backend, chosen_of(candidates) == nullptr));
  }
  return candidates;
}

const Backend* chosen_of(std::span<const Candidate> candidates) {
  const auto chosen = std::ranges::find(candidates, Standing::chosen, &Candidate::standing);
  return chosen == candidates.end() ? nullptr : chosen->backend;
}

}  // namespace moegauge
