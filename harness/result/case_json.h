// One case record as JSON; the keys stand in the order of docs and of results/schema.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/result/record.h"

namespace moegauge {

nlohmann::ordered_json case_to_json(const CaseRecord& record);
nlohmann::ordered_json comparison_to_json(const Comparison& comparison);

// The words that files use for enumerations, by enumerator value.
extern const std::array<std::string, 10> status_words;
extern const std::array<std::string, 2> precision_words, weight_on_input_words, accumulate_words;
extern const std::array<std::string, 4> config_source_words;

// How the three values that are no JSON number are named in `reason` of an error metric.
inline constexpr const char* infinite_word = "infinite";
inline constexpr const char* minus_infinite_word = "minus infinite";
inline constexpr const char* nan_word = "not a number";

}  // namespace moegauge
