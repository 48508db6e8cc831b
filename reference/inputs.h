// Inputs from a counter-based generator (Philox4x32-10, Salmon et al. 2011), keyed by seed, tensor,
// expert and element: the same bits on every machine, and any part can be made again without the
// rest, so that originals are never stored whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/layer.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

enum class Distribution : std::uint8_t {
  gaussian,
  heavy_tail,  // gaussian with outlier channels
  uniform,
  degenerate,  // zero groups, denormals, maxima
  exact,       // every correct kernel returns exactly the oracle's bits (see inputs.cc)
};
std::optional<Distribution> distribution_from(std::string_view name);
std::string_view to_string(Distribution distribution);

// How router choices are spread over experts: "uniform", "balanced", "single", "zipf:S",
// "dirichlet:A" or the path of a trace file (one line of ids per token). Throws InputError.
struct RoutingLaw {
  enum class Kind : std::uint8_t { uniform, balanced, single, zipf, dirichlet, trace } kind = Kind::uniform;
  double parameter = 0;
  std::vector<std::int32_t> trace;  // [rows, top_k]
};
RoutingLaw parse_routing_law(std::string_view text, const Layer& layer);

// Owns what LayerInputs views.
struct OwnedInputs {
  std::int64_t tokens = 0;
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> topk_ids;
  std::vector<float> topk_weights;
  LayerInputs view() const { return {tokens, x, topk_ids, topk_weights}; }
};

// `tokens` distinct random rows. `stream` tells independent draws of one seed apart.
OwnedInputs generate_inputs(const Layer& layer, Distribution distribution, const RoutingLaw& law,
                            std::int64_t tokens, std::uint64_t seed, std::uint64_t stream);

// Rows repeated from a pool: row r of the result is pool row index[r]. Every pool row appears if
// tokens >= pool.tokens; the order is random by seed.
struct PooledInputs {
  OwnedInputs inputs;
  std::vector<std::int32_t> index;  // [tokens]
};
PooledInputs repeat_from_pool(const OwnedInputs& pool, const Layer& layer, std::int64_t tokens,
                              std::uint64_t seed);

// Weights of every local expert of a layer, made on demand. `unit_spread` u: each scale unit is
// multiplied by 2^v, v uniform in [-u, u], so that a kernel that reads a neighbour's scale is caught.
std::unique_ptr<ExpertSource> generated_experts(const Layer& layer, std::shared_ptr<const Scheme> scheme,
                                                Distribution distribution, std::uint64_t seed,
                                                int unit_spread = 0);

}  // namespace moegauge
