#include "harness/workload/drawn_rows.h"

#include <bit>
#include <utility>
#include <vector>

#include "harness/suite/own_fields.h"
#include "reference/base/input_error.h"

namespace moegauge {
namespace {

// Each row of `chosen` with rest(0), rest(1) ... behind it.
template <typename T, typename Rest>
std::vector<T> with_fused(const std::vector<T>& chosen, std::int64_t tokens, std::int64_t fused,
                          const Rest& rest) {
  const std::int64_t slots = tokens > 0 ? std::ssize(chosen) / tokens : 0;
  std::vector<T> all;
  all.reserve(static_cast<std::size_t>(tokens * (slots + fused)));
  for (std::int64_t m = 0; m < tokens; ++m) {
    all.insert(all.end(), chosen.begin() + m * slots, chosen.begin() + (m + 1) * slots);
    for (std::int64_t s = 0; s < fused; ++s) all.push_back(rest(s));
  }
  return all;
}

// Under `exact` the router weights of a token sum to 1, and its output just fits. Each fused expert
// adds as much as all chosen ones may (reference/inputs/exact_plan.cc).
void require_exact_slots(const Layer& layer, const Layer& part, std::int64_t fused) {
  const auto slots = [](std::int64_t top_k) {
    return std::bit_ceil(static_cast<std::uint64_t>(top_k));
  };
  const auto added = static_cast<std::uint64_t>(1 + fused);
  if (part.top_k > 1 && slots(layer.top_k) >= added * slots(part.top_k)) return;
  throw InputError(
      "inputs 'exact'",
      std::to_string(fused) + " fused shared experts beside top_k " + std::to_string(part.top_k),
      "another distribution, or one shared expert beside 2, 4, 8 ... chosen ones");
}

}  // namespace

OwnedInputs drawn_rows(const Problem& problem, std::int64_t fused, const Generator& generator,
                       const std::string& routing, std::int64_t tokens, std::uint64_t stream) {
  const Layer part = routed_part(problem.layer, fused);
  if (fused > 0 && generator.distribution == Distribution::exact) {
    require_exact_slots(problem.layer, part, fused);
  }
  OwnedInputs rows = generate_inputs(part, generator.distribution, parse_routing_law(routing, part),
                                     tokens, generator.seed, stream, problem.scheme.get());
  if (fused == 0) return rows;
  rows.topk_ids = with_fused(rows.topk_ids, tokens, fused, [&](std::int64_t s) {
    return static_cast<std::int32_t>(part.experts + s);
  });
  rows.topk_weights =
      with_fused(rows.topk_weights, tokens, fused, [](std::int64_t) { return 1.0f; });
  return rows;
}

}  // namespace moegauge
