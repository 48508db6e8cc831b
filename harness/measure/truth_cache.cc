#include "harness/measure/truth_cache.h"

#include <algorithm>

#include "reference/base/thread_pool.h"

namespace moegauge {
namespace {

// Points come in the order of the suite, so that few truths are in use at a time; each holds three
// doubles per element of 256 rows (44 MB at K = 7168).
constexpr std::size_t kKept = 4;

}  // namespace

TruthCache::TruthCache(const Problem& problem, const ExpertSource& experts)
    : problem_(problem), experts_(experts) {}

const Truth& TruthCache::truth(const std::string& routing, const OwnedInputs& pool,
                               const Numerics& numerics) {
  const auto known = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.routing == routing && entry.pool_rows == pool.tokens && entry.numerics == numerics;
  });
  if (known != entries_.end()) return known->truth;
  if (entries_.size() == kKept) entries_.pop_front();
  entries_.push_back({routing, pool.tokens, numerics,
                      compute_truth(problem_.layer, *problem_.scheme, numerics, experts_,
                                    pool.view(), ThreadPool::usable_processors())});
  return entries_.back().truth;
}

}  // namespace moegauge
