// One launch of a case for a profiler to look at: no check, no timing that counts, no worker
// process between.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "harness/measure/prepare.h"
#include "reference/base/expected.h"

namespace moegauge {

struct ProfiledLaunch {
  const Backend* backend = nullptr;
  KernelIdentity identity;
  double seconds = 0;  // of the marked launch
};

// Loads one set of weights, launches once to warm up and once marked (RunRequest::profiled),
// eagerly, on the inputs that the case's first timed slot has. Throws InputError where there is no
// such case: a single op, a layer that cannot be read.
Expected<ProfiledLaunch, Unmeasured> profile_case(const CaseCoordinates& c,
                                                  std::span<const Backend* const> backends,
                                                  const std::filesystem::path& root,
                                                  std::uint64_t seed);

}  // namespace moegauge
