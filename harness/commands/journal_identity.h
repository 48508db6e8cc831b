// Of which run a journal is: resuming another's would mix results.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "harness/commands/output_place.h"
#include "harness/measure/session.h"
#include "harness/suite/suite.h"
#include "kernels/backend.h"

namespace moegauge {

// Lines, one for each thing that a result depends on: suite, seed, how it is measured, cases,
// build, devices, and the content of every one of `files` that is there; of files above 16 MiB,
// size, time of writing, the first MiB and samples stand for the content. Where a journal is
// refused, the message shows the line that differs.
std::string journal_header(const std::string& suite, const MeasureSettings& settings,
                           std::span<const CaseCoordinates> cases, std::span<const NamedFile> files,
                           std::span<const Backend* const> backends);

}  // namespace moegauge
