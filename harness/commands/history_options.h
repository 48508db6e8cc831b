// What the commands that read a history share.
#pragma once

#include <memory>
#include <string>

#include "harness/commands/command.h"
#include "harness/history/store.h"

namespace moegauge {

// Null where this build has no histories; `err` then has a line that says so, and the command
// ends with exit_no_verdict. Throws InputError.
std::unique_ptr<HistoryStore> open_history_or_say(const std::string& file, HistoryAccess access,
                                                  const Environment& environment);

// Who changes a history: "name@host".
std::string who_is_this();
std::int64_t seconds_now();

}  // namespace moegauge
