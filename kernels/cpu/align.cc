#include "kernels/cpu/align.h"

namespace moegauge::cpu {

void align(const Layer& layer, std::span<const std::int32_t> topk_ids, Alignment& out) {
  const auto experts = static_cast<std::size_t>(layer.local_experts());
  out.begin.assign(experts + 1, 0);
  out.position.resize(topk_ids.size());
  // Counts land one place to the right, so that the running sum gives each expert's first position.
  for (std::size_t i = 0; i < topk_ids.size(); ++i) {
    const std::int32_t expert = layer.local_id(topk_ids[i]);
    out.position[i] = expert;
    if (expert >= 0) ++out.begin[static_cast<std::size_t>(expert) + 1];
  }
  for (std::size_t e = 0; e < experts; ++e) out.begin[e + 1] += out.begin[e];
  out.pairs.resize(static_cast<std::size_t>(out.begin[experts]));
  std::vector<std::int64_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::size_t i = 0; i < topk_ids.size(); ++i) {
    if (out.position[i] < 0) continue;
    const std::int64_t place = next[static_cast<std::size_t>(out.position[i])]++;
    out.pairs[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(i);
    out.position[i] = static_cast<std::int32_t>(place);
  }
}

}  // namespace moegauge::cpu
