#include "reference/inputs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "reference/base/input_error.h"
#include "reference/dtype.h"
#include "reference/inputs/exact.h"
#include "reference/inputs/routing_law.h"
#include "reference/inputs/rows.h"
#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

constexpr std::array<std::pair<std::string_view, Distribution>, 5> kDistributions = {{
    {"gaussian", Distribution::gaussian},
    {"heavy_tail", Distribution::heavy_tail},
    {"uniform", Distribution::uniform},
    {"degenerate", Distribution::degenerate},
    {"exact", Distribution::exact},
}};

// Softmax of normal logits, in falling order; for one expert the sigmoid of its logit.
std::vector<float> draw_topk_weights(const Layer& layer, std::int64_t tokens, std::uint64_t seed,
                                     std::uint64_t stream) {
  RandomWords words(RandomStream(seed, Purpose::topk_weights, stream));
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(tokens * layer.top_k));
  std::vector<double> row(static_cast<std::size_t>(layer.top_k));
  for (std::int64_t m = 0; m < tokens; ++m) {
    double sum = row.size() == 1 ? 1 : 0;
    for (double& w : row) sum += w = portable_exp(normal_quantile(words.unit()));
    std::ranges::sort(row, std::greater<>());
    for (const double w : row) out.push_back(static_cast<float>(w / sum));
  }
  return out;
}

std::unique_ptr<Rows> x_rows(const Layer& layer, Distribution distribution, std::uint64_t seed,
                             const Scheme* scheme) {
  if (distribution == Distribution::exact && scheme == nullptr) {
    throw InputError("inputs 'exact'", "no scheme is known here",
                     "the scheme whose activations x must survive");
  }
  const SchemeTraits traits = scheme != nullptr ? scheme->traits() : SchemeTraits{};
  if (distribution == Distribution::exact) return exact_x(plan_exact(layer, traits, seed, 0));
  return random_rows(distribution, x_spec(layer, traits, seed));
}

}  // namespace

RowsSpec x_spec(const Layer& layer, const SchemeTraits& traits, std::uint64_t seed) {
  return {.dtype = layer.dtype,
          .deviation = 1,
          .rows = 1,
          .cols = layer.hidden_size,
          .operand = traits.activation,
          .seed = seed,
          .values = Purpose::x,
          .structure = Purpose::x_structure};
}

void require_sizes(const Layer& layer) {
  if (layer.hidden_size > 0 && layer.intermediate_size > 0) return;
  throw InputError("layer",
                   "hidden size " + std::to_string(layer.hidden_size) + ", intermediate size " +
                       std::to_string(layer.intermediate_size),
                   "both at least 1");
}

std::optional<Distribution> distribution_from(std::string_view name) {
  for (const auto& [known, distribution] : kDistributions) {
    if (known == name) return distribution;
  }
  return std::nullopt;
}

std::string_view to_string(Distribution distribution) {
  for (const auto& [name, known] : kDistributions) {
    if (known == distribution) return name;
  }
  return "";
}

OwnedInputs generate_inputs(const Layer& layer, Distribution distribution, const RoutingLaw& law,
                            std::int64_t tokens, std::uint64_t seed, std::uint64_t stream,
                            const Scheme* scheme) {
  require_sizes(layer);
  OwnedInputs inputs;
  inputs.tokens = tokens;
  inputs.topk_ids = draw_ids(layer, law, tokens, seed, stream);
  inputs.topk_weights = distribution == Distribution::exact
                            ? exact_topk_weights(layer, tokens, seed, stream)
                            : draw_topk_weights(layer, tokens, seed, stream);
  const auto rows = x_rows(layer, distribution, seed, scheme);
  const auto cols = static_cast<std::size_t>(layer.hidden_size);
  std::vector<float> row(cols);
  inputs.x.resize(static_cast<std::size_t>(tokens) * cols);
  for (std::int64_t m = 0; m < tokens; ++m) {
    rows->fill({.tensor = stream, .row = m, .stored = m}, row);
    std::ranges::transform(row, inputs.x.begin() + m * layer.hidden_size,
                           [&](float v) { return to_bits(layer.dtype, v); });
  }
  return inputs;
}

PooledInputs repeat_from_pool(const OwnedInputs& pool, const Layer& layer, std::int64_t tokens,
                              std::uint64_t seed) {
  if (pool.tokens == 0 && tokens > 0) {
    throw InputError("inputs", "an empty pool of rows", "at least one row to repeat");
  }
  // Whole copies of the pool and a random part of one, then shuffled together.
  RandomWords words(RandomStream(seed, Purpose::pool_order, 0));
  const auto part = permutation(pool.tokens, words);
  const auto order = permutation(tokens, words);
  PooledInputs out;
  out.inputs.tokens = tokens;
  out.index.reserve(static_cast<std::size_t>(tokens));
  for (const auto place : order)
    out.index.push_back(part[static_cast<std::size_t>(place % pool.tokens)]);
  const auto gather = [&](const auto& from, std::int64_t width, auto& to) {
    to.reserve(static_cast<std::size_t>(tokens * width));
    for (const auto row : out.index) {
      const auto begin = from.begin() + row * width;
      to.insert(to.end(), begin, begin + width);
    }
  };
  gather(pool.x, layer.hidden_size, out.inputs.x);
  gather(pool.topk_ids, layer.top_k, out.inputs.topk_ids);
  gather(pool.topk_weights, layer.top_k, out.inputs.topk_weights);
  return out;
}

}  // namespace moegauge
