// Expert ids drawn by a routing law (reference/inputs.h).
#pragma once

#include <cstdint>
#include <vector>

#include "reference/inputs.h"
#include "reference/random/stream.h"

namespace moegauge {

// [tokens, top_k] global ids. Throws InputError if the layer has fewer experts than top_k.
std::vector<std::int32_t> draw_ids(const Layer& layer, const RoutingLaw& law, std::int64_t tokens,
                                   std::uint64_t seed, std::uint64_t stream);

// Fisher and Yates's shuffle of 0 .. n-1, by `words`.
std::vector<std::int32_t> permutation(std::int64_t n, RandomWords& words);

}  // namespace moegauge
