// Tables that people paste. Each function reads the rows under a head at lines[at] and leaves `at`
// on the last line that it took.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/endtoend/pasted_text.h"
#include "harness/result/end_to_end.h"

namespace moegauge {

// What stood above a table and is true of its rows.
struct PastedContext {
  std::string file = {};
  std::string model = {}, title = {}, arguments = {};
};

// Whether the line is the head of a table that is known; if so, its rows are added to `rows`.
bool read_table(const std::vector<PastedLine>& lines, std::size_t& at, const PastedContext& context,
                std::vector<EndToEndRow>& rows);

}  // namespace moegauge
