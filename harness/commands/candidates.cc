#include "harness/commands/candidates.h"

#include <stdexcept>

namespace moegauge {
namespace {

Candidate candidate_for(const Problem& problem, const Backend& backend, bool none_chosen_yet) {
  const Availability availability = backend.availability();
  Candidate candidate{.backend = std::string(backend.name()), .why = availability.detail};
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
                                      std::span<const Backend* const> backends) {
  std::vector<Candidate> candidates;
  bool chosen = false;
  for (const Backend* backend : backends) {
    candidates.push_back(candidate_for(problem, *backend, !chosen));
    chosen = chosen || candidates.back().standing == Standing::chosen;
  }
  return candidates;
}

}  // namespace moegauge
