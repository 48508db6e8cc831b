// Everything that can be wrong with a run's input, found before anything is started: a wrong file
// or key must be one line and exit code 2, and never a case that is quietly not measured.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "harness/commands/output_place.h"
#include "harness/suite/suite.h"
#include "kernels/backend.h"

namespace moegauge {

// Throws InputError for a routing law that cannot be, and for a config that cannot be meant: a
// table that cannot be read or is of another layer, a key that the backend does not know. A
// well-formed config that does not fit the device is no bad input: its case is `refused_config`.
void check_inputs(const std::vector<CaseCoordinates>& cases, const std::filesystem::path& suite,
                  std::span<const Backend* const> backends, const std::filesystem::path& root);

// The files that a run of these cases reads, a checkpoint's index and shards among them.
std::vector<NamedFile> files_read(const std::vector<CaseCoordinates>& cases,
                                  const std::filesystem::path& suite,
                                  std::span<const Backend* const> backends,
                                  const std::filesystem::path& root);

// The weights beside a model that is a checkpoint's config.json: nothing may be written over them,
// also where none of them is read.
std::vector<NamedFile> weights_beside(const std::filesystem::path& model);

}  // namespace moegauge
