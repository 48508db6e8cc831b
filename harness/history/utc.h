// Points in time as results spell them. Runs are ordered by seconds in UTC, so that neither a time
// zone nor the order in which files came decides what was before what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace moegauge {

// "2026-11-30T17:10:35+01:00" or "...Z" as seconds since 1970 in UTC; nothing for anything else.
std::optional<std::int64_t> utc_seconds(std::string_view text);
std::string utc_text(std::int64_t seconds);  // "2026-11-30T16:10:35Z"
std::string utc_date(std::int64_t seconds);  // "2026-11-30"

}  // namespace moegauge
