// What a reader of a result must know of the config tables and the weights that it rests on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// Each table that a case used, named once for each thing: where an engine would read it otherwise
// (ties that depend on the file's order), and what of its metadata is stale.
std::vector<std::string> table_warnings(const Result& result, const std::filesystem::path& root);

// Says where weights were partly in the cache although they should not be: fewer sets of them took
// turns than that needs, because memory was short or to save time (--iterate). Empty if nowhere.
std::string warm_weights_warning(const Result& result);

// Says where cases of one backend were held against read rates that differ by more than a fifth:
// each worker measures its own, and what else ran meanwhile may have held one down. Empty if none.
std::string ceilings_warning(const Result& result);

}  // namespace moegauge
