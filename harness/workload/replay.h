// A layer whose tensors come from a file, missing ones from elsewhere (docs/replay.md).
#pragma once

#include <cstdint>
#include <memory>

#include "harness/workload/replay_file.h"
#include "harness/workload/workload.h"

namespace moegauge {

// How what the file lacks is generated: as its metadata keys `inputs` (a distribution) and `seed`
// say, which dumps have; gaussian and `seed` without them. Throws InputError.
Generator replay_generator(const ReplayFile& file, std::uint64_t seed);

// `others` are for what the file lacks, the layer's last `fused` experts shared ones. Throws
// InputError.
std::unique_ptr<Workload> replayed_workload(std::unique_ptr<ReplayFile> file, const Model& model,
                                            const Problem& problem, std::int64_t fused,
                                            const Generator& generator, Weights others);

}  // namespace moegauge
