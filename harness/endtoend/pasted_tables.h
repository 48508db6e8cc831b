// Tables that people paste. Each function reads the rows under a head at lines[at] and leaves `at`
// on the last line that it took.
#pragma once

#include <cstddef>
#include <map>
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

// Rows that another table of the same text may add a number to, by what they are of.
using RowsByPoint = std::map<std::string, std::vector<std::size_t>>;

// Whether the line is the head of a table that is known; if so, its rows are added to `rows`.
bool read_table(const std::vector<PastedLine>& lines, std::size_t& at, const PastedContext& context,
                RowsByPoint& by_point, std::vector<EndToEndRow>& rows);

}  // namespace moegauge
