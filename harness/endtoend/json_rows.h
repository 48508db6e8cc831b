// Shared by the readers of JSON files and of files of a JSON line each.
#pragma once

#include "harness/result/end_to_end.h"

namespace moegauge {

// Python's json module writes NaN and Infinity, which are no JSON, where there is no number: they
// become null, which every reader here takes for absent. Text within strings stays.
std::string with_null_for_no_number(const std::string& text);

// A result of vLLM's bench serve.
bool is_serve_result(const JsonCursor& top);
EndToEndRow serve_row(const JsonCursor& top);

}  // namespace moegauge
