// The oracle's answers, kept while they can be asked again: rivals with equal numerics share one,
// and so do all points above 256 tokens of one routing, whose pool is the same. The oracle costs
// more than everything else in a check.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "harness/measure/check.h"
#include "kernels/backend.h"
#include "reference/oracle.h"

namespace moegauge {

class TruthCache {
 public:
  // `experts` outlives the cache.
  TruthCache(const Problem& problem, const ExpertSource& experts);

  // Valid until the next call. `routing` names the law that `pool` was drawn by.
  const Truth& truth(const std::string& routing, const OwnedInputs& pool, const Numerics& numerics);

 private:
  struct Entry {
    std::string routing;
    std::int64_t pool_rows = 0;
    Numerics numerics;
    Truth truth;
  };
  const Problem problem_;
  const ExpertSource& experts_;
  std::deque<Entry> entries_;  // oldest first
};

}  // namespace moegauge
