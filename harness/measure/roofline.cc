#include "harness/measure/roofline.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace moegauge {
namespace {

double bytes_of(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

// Microseconds for `amount` at `rate` per second; a rate of 0 was not measured and bounds nothing.
double microseconds(double amount, double rate) { return rate > 0 ? amount / rate * 1e6 : 0; }

}  // namespace

double expert_bytes(const Layer& layer, const Scheme& scheme) {
  const std::int64_t k = layer.hidden_size, n = layer.intermediate_size;
  const MatrixBytes w13 = scheme.weight_bytes(weight_shape(layer, Role::w13));
  const MatrixBytes w2 = scheme.weight_bytes(weight_shape(layer, Role::w2));
  const std::int64_t bias = layer.expert_bias ? 4 * (2 * n + k) : 0;
  return static_cast<double>(w13.total()) + static_cast<double>(w2.total()) +
         static_cast<double>(bias);
}

Work work_of(const Layer& layer, const Scheme& scheme, const Numerics& numerics,
             const LayerInputs& inputs) {
  std::vector<bool> touched(static_cast<std::size_t>(layer.local_experts()));
  double pairs = 0;
  for (const std::int32_t id : inputs.topk_ids) {
    const std::int32_t local = layer.local_id(id);
    if (local < 0) continue;
    touched[static_cast<std::size_t>(local)] = true;
    ++pairs;
  }
  const auto distinct = static_cast<double>(std::ranges::count(touched, true));
  const auto k = static_cast<double>(layer.hidden_size);
  const auto n = static_cast<double>(layer.intermediate_size);
  const auto tokens = static_cast<double>(inputs.tokens);
  const Precision pair =
      numerics.gemm2_out == Precision::fp32 ? numerics.pair_out : numerics.gemm2_out;
  const double element = 2, pair_arguments = 4 + 4;  // bf16 or fp16; int32 id and fp32 weight
  return {.weight_bytes = distinct * expert_bytes(layer, scheme),
          .activation_bytes =
              tokens * (2 * k * element + static_cast<double>(layer.top_k) * pair_arguments),
          .intermediate_bytes = 2 * pairs * (n * bytes_of(numerics.act_out) + k * bytes_of(pair)),
          .flops = pairs * 6 * n * k};
}

Roofline roofline_of(const Work& work, const Ceilings& ceilings, double median_us, Cache cache,
                     std::int64_t last_level_cache_bytes) {
  const bool cached =
      cache == Cache::hot && work.bytes() <= static_cast<double>(last_level_cache_bytes);
  const double moved = work.bytes() - work.cached_bytes;
  const double read_rate = cached ? 0 : ceilings.read_bytes_per_s;
  const double compute_us = microseconds(work.flops, ceilings.dot_flops_per_s);
  const double floor_us = std::max(compute_us, microseconds(moved, read_rate));
  const double with_intermediates =
      std::max(compute_us, microseconds(moved + work.intermediate_bytes, read_rate));
  return {.floor_us = floor_us,
          .floor_with_intermediates_us = with_intermediates,
          .fraction = median_us > 0 ? floor_us / median_us : 0};
}

std::int64_t weight_sets_for_cold(double weight_bytes_touched,
                                  std::int64_t last_level_cache_bytes) {
  if (weight_bytes_touched <= 0) return 1;
  const double sets =
      std::ceil(4 * static_cast<double>(last_level_cache_bytes) / weight_bytes_touched);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(sets));
}

}  // namespace moegauge
