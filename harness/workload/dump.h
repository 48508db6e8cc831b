// What a checked case was given and gave, as a file that replays (docs/replay.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "harness/workload/workload.h"
#include "reference/oracle.h"

namespace moegauge {

struct DumpedCase {
  const CaseCoordinates& coordinates;
  const Problem& problem;
  const Workload& workload;
  const OwnedInputs& inputs;            // every row that the kernel was given
  std::span<const std::int32_t> index;  // row -> row of the truth
  const Truth& truth;
  std::span<const std::uint16_t> output;  // [tokens, K], bits of the layer's dtype
};

// Weights beyond this are left out: they are what the metadata, or the case's own file, says.
inline constexpr std::uint64_t max_dumped_weights = std::uint64_t{256} << 20;

// Throws InputError where it cannot be written.
void write_dump(const std::filesystem::path& file, const DumpedCase& dumped);

}  // namespace moegauge
