// From the options of `moegauge tune` to what the search needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "harness/commands/command.h"
#include "harness/tune/tune.h"

namespace moegauge {

struct TuneOptions {
  CaseCoordinates asked;
  std::string tokens, device, out, base, budget, markdown, result;
  std::string min_win = "2%", timeout = "120s";
  std::size_t candidates = 32;
  double seconds_per_key = 0;  // 0: not given
  std::uint64_t seed = 0;
  bool no_between = false, resume = false, dry_run = false, quiet = false;
};

// What a tuning is made of. No backend: why, in `missing`.
struct PreparedTune {
  TuneSetup setup;
  std::string missing;
};
// Throws InputError for what cannot be meant.
PreparedTune prepare_tune(const TuneOptions& options, const Environment& environment,
                          const std::filesystem::path& root);

}  // namespace moegauge
