// What a result's context says of the run beside Google Benchmark's own keys.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/suite/suite.h"
#include "kernels/backend.h"

namespace moegauge {

using Context = std::vector<std::pair<std::string, std::string>>;

// `commit` and `commit_time` of the source tree that this tool runs from: the hash, with -dirty
// where files differ from it, and the time in UTC. Nothing for an installed tree, and where there
// is no git.
void add_commit(const std::filesystem::path& root, Context& context);

// `device.NAME`: what decides a latency besides the model and is not seen in the record: memory,
// driver, power cap, MIG, ECC. Nothing that changes from run to run.
void add_device_facts(const Device& device, Context& context);

// Of a run of one shard: which of how many, of what selection, by which build.
void add_shard(const std::string& shard, std::span<const CaseCoordinates> selection,
               std::optional<double> seconds_per_case, Context& context);

// One line of `nvidia-smi --query-gpu=name,driver_version,power.limit,mig.mode.current,
// ecc.mode.current --format=csv,noheader,nounits` as facts of the device of this name; empty where
// it is another's.
std::string facts_in_smi_line(std::string_view line, const std::string& device_name);

}  // namespace moegauge
