// The least time that a layer could take on this machine (Williams, Waterman and Patterson, CACM 52
// (2009) 65-76): each byte that must move over the measured read rate, each operation over the
// measured dot rate, whichever is longer.
#pragma once

#include <cstdint>

#include "harness/result/record.h"
#include "kernels/backend.h"
#include "reference/layer.h"
#include "reference/numerics.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

// What one call must do, for the routing that was really drawn. Pairs that are dropped or held by
// another rank cost nothing.
struct Work {
  double weight_bytes = 0;      // distinct experts touched, each once, values and scales and biases
  double activation_bytes = 0;  // x, ids and router weights read once, y written once
  // What a kernel in two passes moves besides: the activation's output h [pairs, N] and the pairs'
  // outputs [pairs, K], each written once and read once in the precisions that it declares.
  double intermediate_bytes = 0;
  double flops = 0;  // 2 per multiply-add: pairs * (2 * 2N * K + 2 * N * K)
  // Of all these bytes, those that a last-level cache may still hold from the call before.
  double cached_bytes = 0;
  double bytes() const { return weight_bytes + activation_bytes; }
};

// Weights and scales of one expert in the scheme's canonical storage, and its biases.
double expert_bytes(const Layer& layer, const Scheme& scheme);
Work work_of(const Layer& layer, const Scheme& scheme, const Numerics& numerics,
             const LayerInputs& inputs);

// fraction = floor / median; 0 ceilings (not measured) bound nothing. Where the cache mode is `hot`
// and a call's bytes fit the last-level cache, memory bounds nothing either.
Roofline roofline_of(const Work& work, const Ceilings& ceilings, double median_us, Cache cache,
                     std::int64_t last_level_cache_bytes);

// Weight sets over which `cold_weights` must rotate so that four last-level caches' worth of other
// bytes pass before a set is read again: ceil(4 * cache / bytes touched by one call), at least 1.
std::int64_t weight_sets_for_cold(double weight_bytes_touched, std::int64_t last_level_cache_bytes);

}  // namespace moegauge
