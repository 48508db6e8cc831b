// Where a run may write: over nothing that is read, and over no other case's dump.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "harness/commands/output_place.h"
#include "harness/result/record.h"
#include "harness/suite/suite.h"

namespace moegauge {

// What must stay as it is: the files that are read, and weights beside models also where only their
// config.json is.
std::vector<NamedFile> with_weights(std::vector<NamedFile> read, const Suite& suite,
                                    const std::filesystem::path& root);

// Throws InputError where the result, or what lies beside it, would be written over one of `taken`.
// Before anything is measured; nothing for an empty `out`.
void require_writable_place(const std::filesystem::path& out, std::span<const NamedFile> taken);

// Makes the folder of --dump. Throws InputError where it is one of tensors that are read, or cannot
// be made; nothing for an empty one.
void make_dump_folder(const std::filesystem::path& folder, std::span<const NamedFile> taken);

// Of the cases that are not done: a dump of an earlier run must not pass for this one's where the
// case gives no output now. Those of other cases are somebody else's.
void remove_old_dumps(const std::filesystem::path& folder,
                      const std::vector<CaseCoordinates>& cases,
                      const std::vector<std::optional<CaseRecord>>& done);

}  // namespace moegauge
