// Which backends would serve a layer: what `explain` shows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace moegauge {

enum class Standing : std::uint8_t { chosen, would_also_serve, refuses, absent };
std::string_view to_string(Standing standing);

struct Candidate {
  std::string backend = {};
  Standing standing = Standing::absent;
  std::string reason = {};  // of a refusal: its enumerated name
  std::string why = {};     // one sentence: what it is, what it refuses, or what is not there
  std::string remedy = {};  // of an absent one: how to get it
};

// In the order in which `auto` tries them; the first that serves is chosen.
std::vector<Candidate> candidates_for(const Problem& problem,
                                      std::span<const Backend* const> backends);

}  // namespace moegauge
