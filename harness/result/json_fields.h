// Shared by the writer and the reader of cases: how doubles that are no number are written, and how
// fields of a newer version are kept.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace moegauge {

using Json = nlohmann::ordered_json;

// One line of strict ASCII JSON: bytes that are not UTF-8 become U+FFFD, everything beyond ASCII is
// escaped (some readers end a line at U+2028).
std::string to_line(const Json& json);

// A finite number. Throws std::invalid_argument: a latency or rate that is none is a fault of the
// caller, and must not reach a file as null.
Json finite(double value, std::string_view name);

// Members of `all` that `known` lacks, at any depth of objects; null where there are none.
Json beyond(const Json& all, const Json& known);
// Adds them again: members of `extra` that `json` lacks.
void merge_missing(Json& json, const Json& extra);

}  // namespace moegauge
