// Which (token, slot) pairs each local expert serves: the pairs of one call sorted by expert, pairs
// of one expert in the order of the tokens. Pairs dropped (-1) or held by another rank are left
// out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/layer.h"

namespace moegauge::cpu {

struct Alignment {
  std::vector<std::int64_t> begin;     // [local experts + 1]: expert e's positions in `pairs`
  std::vector<std::int32_t> pairs;     // [local pairs]: token * top_k + slot
  std::vector<std::int32_t> position;  // [tokens * top_k]: place of a pair in `pairs`, or -1

  std::int64_t local_pairs() const { return static_cast<std::int64_t>(pairs.size()); }
  std::int64_t rows(std::int64_t expert) const {
    return begin[static_cast<std::size_t>(expert) + 1] - begin[static_cast<std::size_t>(expert)];
  }
};

// Reuses the memory of `out`.
void align(const Layer& layer, std::span<const std::int32_t> topk_ids, Alignment& out);

}  // namespace moegauge::cpu
