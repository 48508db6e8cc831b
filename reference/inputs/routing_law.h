// Expert ids drawn by a routing law (reference/inputs.h).
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "reference/inputs.h"
#include "reference/random/stream.h"

namespace moegauge {

// The layer without its last `always_on` experts and slots.
Layer chosen_part(const Layer& layer, std::int64_t always_on);

// Rows of `chosen` [tokens, top_k - always_on] with a slot for each of `always_on` behind, filled
// by rest(0), rest(1) and so on.
template <typename T, typename Rest>
std::vector<T> with_always_on(const std::vector<T>& chosen, std::int64_t tokens,
                              std::int64_t always_on, const Rest& rest) {
  const std::int64_t slots = tokens > 0 ? std::ssize(chosen) / tokens : 0;
  std::vector<T> all;
  all.reserve(static_cast<std::size_t>(tokens * (slots + always_on)));
  for (std::int64_t m = 0; m < tokens; ++m) {
    all.insert(all.end(), chosen.begin() + m * slots, chosen.begin() + (m + 1) * slots);
    for (std::int64_t s = 0; s < always_on; ++s) all.push_back(rest(s));
  }
  return all;
}

// [tokens, top_k] global ids. Throws InputError if the layer has fewer experts than top_k.
std::vector<std::int32_t> draw_ids(const Layer& layer, const RoutingLaw& law, std::int64_t tokens,
                                   std::uint64_t seed, std::uint64_t stream);

// Fisher and Yates's shuffle of 0 .. n-1, by `words`.
std::vector<std::int32_t> permutation(std::int64_t n, RandomWords& words);

}  // namespace moegauge
