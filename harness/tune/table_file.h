// Tuned-config files as this tool writes them (docs/tune.md).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "harness/config_table.h"

namespace moegauge {

// What a file must say of the layer to be used for it, and of the machine to be seen as stale on
// another, with `more` of how it came about.
std::map<std::string, std::string> table_metadata(const Problem& problem, const Backend& backend,
                                                  const std::map<std::string, std::string>& more);

// Entries by batch size, then the metadata: strict JSON, read back by read_config_table.
std::string table_text(const ConfigTable& table);

}  // namespace moegauge
