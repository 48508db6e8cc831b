#include "reference/ops/alignment.h"

#include <algorithm>
#include <string>
#include <utility>

#include "reference/base/input_error.h"

namespace moegauge {

std::vector<ExpertBlocks> aligned(std::span<const std::int32_t> topk_ids,
                                  std::span<const std::int32_t> expert_map, std::int64_t experts,
                                  std::int64_t block_size, bool skip_remote) {
  std::vector<ExpertBlocks> all(static_cast<std::size_t>(experts));
  for (std::size_t pair = 0; pair < topk_ids.size(); ++pair) {
    if (topk_ids[pair] < 0) continue;
    all[static_cast<std::size_t>(topk_ids[pair])].pairs.push_back(static_cast<std::int32_t>(pair));
  }
  std::vector<ExpertBlocks> used;
  std::int64_t begin = 0;
  for (std::size_t e = 0; e < all.size(); ++e) {
    ExpertBlocks& blocks = all[e];
    blocks.expert = expert_map.empty() ? static_cast<std::int32_t>(e) : expert_map[e];
    if (blocks.pairs.empty() || (skip_remote && blocks.expert < 0)) continue;
    blocks.begin = begin;
    const auto count = static_cast<std::int64_t>(blocks.pairs.size());
    begin = blocks.end = begin + (count + block_size - 1) / block_size * block_size;
    used.push_back(std::move(blocks));
  }
  return used;
}

std::int64_t aligned_room(std::int64_t pairs, std::int64_t experts, std::int64_t block_size) {
  return std::min(pairs + experts * (block_size - 1), pairs * block_size);
}

void require_ids(const Tensor& ids, std::int64_t experts) {
  for (const std::int32_t id : ids.as<std::int32_t>()) {
    if (id < -1 || id >= experts) {
      throw InputError(ids.spec.name, "the id " + std::to_string(id),
                       "-1 to " + std::to_string(experts - 1));
    }
  }
}

}  // namespace moegauge
