// Results of `run --shard I/N` as the one result that a run without it would have left.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/result/record.h"

namespace moegauge {

// Keys of a shard's context. `selection`: of all cases that the shards share out; `build`: of the
// program that measured; `suite` and `seed` stand in every result.
inline const std::string shard_key = "shard", selection_key = "selection", build_key = "build";
// In a merged result: how many there were.
inline const std::string shards_key = "shards";

// "35 cases, 18 points, 0123456789abcdef": the same for the same cases in any order, so that a
// merged result can be held against what its shards were to be. `seconds`: how long a case is
// measured, where the suite says.
std::string selection_text(std::span<const CaseCoordinates> cases, const std::string& effort);
std::string selection_text(std::span<const CaseRecord> cases, const std::string& effort);

struct ShardFile {
  std::string where = {};  // the file, for messages
  Result result = {};
};

// Points in the order of the suite, each with its rivals. Throws InputError for a shard that is
// missing, there twice, or of another suite, selection, seed or build than the first, by its name:
// "shard 3/8 is missing".
Result merge_shards(std::vector<ShardFile> files);

}  // namespace moegauge
