#pragma once

#include <cstddef>
#include <string_view>

namespace moegauge {

// Optimal string alignment distance (Damerau-Levenshtein without edits of a transposed pair),
// ignoring ASCII case: insertions, deletions, substitutions, swapped neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace moegauge
