// Which backends would serve a layer, in the order in which `auto` tries them: what `explain` shows
// and what a case is measured on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/arch.h"
#include "kernels/backend.h"

namespace moegauge {

enum class Standing : std::uint8_t { chosen, would_also_serve, refuses, absent };
std::string_view to_string(Standing standing);

struct Candidate {
  const Backend* backend = nullptr;
  Standing standing = Standing::absent;
  std::string reason = {};  // of a refusal: its enumerated name
  std::string why = {};     // one sentence: what it is, what it refuses, or what is not there
  std::string remedy = {};  // of an absent one: how to get it
};

// Of the backends called `wanted`, or of all for "auto"; the first that serves is chosen.
std::vector<Candidate> candidates_for(const Problem& problem,
                                      std::span<const Backend* const> backends,
                                      std::string_view wanted = "auto");
std::vector<Candidate> candidates_for(const OpProblem& problem,
                                      std::span<const Backend* const> backends,
                                      std::string_view wanted = "auto");

// The same on devices of a family, wherever this runs: what the kernels there are would serve.
// Memory and drivers are not asked.
std::vector<Candidate> candidates_on(const ArchFamily& family, const Problem& problem,
                                     std::span<const Backend* const> backends);

// The chosen one, or null.
const Backend* chosen_of(std::span<const Candidate> candidates);

}  // namespace moegauge
