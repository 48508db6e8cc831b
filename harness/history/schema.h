// The tables of a history, and whether a file is one that this version reads.
#pragma once

#include "harness/history/sqlite.h"

namespace moegauge::sqlite {

// Makes the tables of an empty file where `create`. Throws InputError for a file of anything else,
// or of a newer version.
void require_schema(Database& database, bool create);

}  // namespace moegauge::sqlite
