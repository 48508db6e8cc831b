// Shared by the readers of JSON files and of files of a JSON line each.
#pragma once

#include "harness/result/end_to_end.h"

namespace moegauge {

// A result of vLLM's bench serve.
bool is_serve_result(const JsonCursor& top);
EndToEndRow serve_row(const JsonCursor& top);

}  // namespace moegauge
