// The right name for a misspelt one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moegauge {

// The candidates that resemble `name` (contain it, or are at most half their length away), nearest
// first, at most `limit`; ties keep the given order.
std::vector<std::string> similar_names(std::string_view name,
                                       std::span<const std::string> candidates, std::size_t limit);

// What would have been right: `did you mean "tokens"?` where one candidate is close, else
// `known: a, b, c`.
std::string suggestion(std::string_view name, std::span<const std::string> candidates);

// "a, b, c".
std::string joined(std::span<const std::string> names);

// Names shown in one line of text: quoted, control characters and quotes escaped, bytes that are
// not UTF-8 replaced by U+FFFD, long ones cut with an ellipsis.
std::string in_quotes(std::string_view name);

}  // namespace moegauge
