#pragma once

#include <cstddef>
#include <cstdint>

namespace moegauge {

// The least number of pieces of b that hold a; a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A size that is known not to be negative, for subscripts and counts of bytes.
constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace moegauge
