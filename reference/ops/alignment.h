// Pairs grouped by expert in whole blocks, as ops/align.cc describes the layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/tensor.h"

namespace moegauge {

// One expert's entries: its pairs in rising order, then padding up to `end`.
struct ExpertBlocks {
  std::int64_t begin = 0, end = 0;
  std::int32_t expert = -1;  // local, or -1
  std::vector<std::int32_t> pairs = {};
};

// In rising order of global ids; experts without pairs have none. `expert_map` [experts] or empty.
std::vector<ExpertBlocks> aligned(std::span<const std::int32_t> topk_ids,
                                  std::span<const std::int32_t> expert_map, std::int64_t experts,
                                  std::int64_t block_size, bool skip_remote);

// Entries that never are too few: every expert may leave block - 1 empty, but no more experts than
// pairs have any.
std::int64_t aligned_room(std::int64_t pairs, std::int64_t experts, std::int64_t block_size);

// Throws InputError where an id is neither -1 nor below `experts`.
void require_ids(const Tensor& ids, std::int64_t experts);

}  // namespace moegauge
