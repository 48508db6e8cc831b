#include "reference/layer.h"

#include <algorithm>

namespace moegauge {

std::int64_t Layer::local_experts() const {
  if (expert_map.empty()) return experts;
  return std::ranges::count_if(expert_map, [](std::int32_t local) { return local >= 0; });
}

std::int32_t Layer::local_id(std::int32_t global_id) const {
  if (global_id < 0 || global_id >= experts) return -1;
  return expert_map.empty() ? global_id : expert_map[static_cast<std::size_t>(global_id)];
}

}  // namespace moegauge
