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

#include "reference/base/expected.h"
#include "reference/layer.h"
#include "reference/schemes/scheme.h"

namespace moegauge {

enum class Distribution : std::uint8_t {
  gaussian,
  heavy_tail,  // gaussian with outlier channels
  uniform,
  degenerate,  // zero groups, denormals, maxima, groups that are all equal
  exact,       // every correct kernel returns exactly the oracle's bits (reference/inputs/exact.h)
};
std::optional<Distribution> distribution_from(std::string_view name);
std::string_view to_string(Distribution distribution);

// How router choices are spread over the global experts. A token's experts are distinct, except in
// traces.
//   uniform      every expert alike
//   balanced     every expert equally often, to within one
//   single       all tokens to the same top_k experts: the first that this rank holds
//   zipf:S       the r-th most popular expert (in an order drawn by seed) has weight r^-S, S >= 0
//   dirichlet:A  popularities drawn by seed from a symmetric Dirichlet distribution, A > 0; small A
//                means few busy experts
//   else the path of a trace file: one line of top_k ids per token, split by commas or blanks; -1
//   is a dropped pair; `#` starts a comment; rows are used in turn, from the start again at the end
struct RoutingLaw {
  enum class Kind : std::uint8_t {
    uniform,
    balanced,
    single,
    zipf,
    dirichlet,
    trace
  } kind = Kind::uniform;
  double parameter = 0;
  std::vector<std::int32_t> trace = {};  // [rows, top_k]
};
// The law that `text` names, or nothing: it is the path of a trace file then. What is wrong with a
// law's parameter, and what would be right.
struct BadRouting {
  std::string wrong, right;
};
Expected<std::optional<RoutingLaw>, BadRouting> routing_law_named(std::string_view text);

// Reads a trace too. Throws InputError.
RoutingLaw parse_routing_law(std::string_view text, const Layer& layer);

// Owns what LayerInputs views.
struct OwnedInputs {
  std::int64_t tokens = 0;
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> topk_ids;
  std::vector<float> topk_weights;
  LayerInputs view() const { return {tokens, x, topk_ids, topk_weights}; }
};

// `tokens` random rows of x with standard deviation 1 (except degenerate and exact), experts, and
// positive weights that sum to 1, in falling order (top_k = 1: a value in (0, 1)). `stream` tells
// independent draws of one seed apart. `scheme` is needed by `exact`, which must know what its
// activations quantise to (InputError without it), and heeded by `degenerate`.
OwnedInputs generate_inputs(const Layer& layer, Distribution distribution, const RoutingLaw& law,
                            std::int64_t tokens, std::uint64_t seed, std::uint64_t stream,
                            const Scheme* scheme = nullptr);

// Rows repeated from a pool: row r of the result is pool row index[r]. Every pool row appears if
// tokens >= pool.tokens, each equally often to within one; the order is random by seed.
struct PooledInputs {
  OwnedInputs inputs;
  std::vector<std::int32_t> index;  // [tokens]
};
PooledInputs repeat_from_pool(const OwnedInputs& pool, const Layer& layer, std::int64_t tokens,
                              std::uint64_t seed);

// Weights of every local expert of a layer, made on demand: standard deviation 1/sqrt(cols), so
// that h and y are of order 1. Keyed by global expert id and by row within gate or up: ranks of an
// expert map, and both gate/up orders, see the same experts. `unit_spread` u: each scale unit is
// multiplied by 2^v, v a uniform integer in [-u, u], so that a kernel that reads a neighbour's
// scale is caught; under `exact` the spread lies in the units' scales alone, as far as the format
// allows. Throws InputError where the layer or scheme does not allow the distribution.
std::unique_ptr<ExpertSource> generated_experts(const Layer& layer,
                                                std::shared_ptr<const Scheme> scheme,
                                                Distribution distribution, std::uint64_t seed,
                                                int unit_spread = 0);

}  // namespace moegauge
