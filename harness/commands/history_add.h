// Adding a result to a history, as `history add` and `gate --add` do.
#pragma once

#include <iosfwd>
#include <set>
#include <string>

#include "harness/commands/command.h"
#include "harness/history/store.h"
#include "harness/history/summary.h"
#include "harness/result/result_io.h"

namespace moegauge {

// Prints a line to `out` once it is on the disk, and to `err` what is odd about its time. `held`:
// ids of cases that are no baseline. Throws InputError.
void add_to_history(HistoryStore& store, const Result& result, const std::string& file,
                    const GivenCommit& given, const std::set<std::string>& held, std::ostream& out,
                    std::ostream& err);

}  // namespace moegauge
