// Choosing among a suite's cases: what --filter and --tokens mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/suite/suite.h"

namespace moegauge {

// Whether the whole id matches the glob: `*` any characters ("/" too), `?` one, `[abc]` one of
// these, backslash quotes.
bool matches_glob(const std::string& glob, const std::string& id);

// The cases whose id matches, in their order. May be empty: the caller decides what that means.
std::vector<CaseCoordinates> filter_cases(const std::vector<CaseCoordinates>& cases,
                                          const std::string& glob);

// "1,4,16" or "1-4096*2" (1, 2, 4, ... up to 4096), mixed by commas. Throws InputError that names
// `where`, e.g. "--tokens"; every value from 0 to max_tokens, none twice.
std::vector<std::int64_t> parse_token_list(std::string_view text, const std::string& where);

// Every case at these batch sizes instead of the suite's own: the suite's cases without their
// tokens, each once, at its first place, times `tokens`.
std::vector<CaseCoordinates> override_tokens(const std::vector<CaseCoordinates>& cases,
                                             const std::vector<std::int64_t>& tokens);

}  // namespace moegauge
