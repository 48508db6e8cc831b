#include "reference/inputs/routing_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "reference/base/input_error.h"
#include "reference/random/portable_math.h"

namespace moegauge {
namespace {

using Ids = std::vector<std::int32_t>;

// Distinct ids of one token, each expert alike.
void draw_uniform(const Layer& layer, RandomWords& words, Ids& out) {
  const std::size_t begin = out.size();
  while (out.size() < begin + static_cast<std::size_t>(layer.top_k)) {
    const auto id =
        static_cast<std::int32_t>(words.below(static_cast<std::uint32_t>(layer.experts)));
    if (std::find(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), id) == out.end()) {
      out.push_back(id);
    }
  }
}

// Distinct ids by popularity: each expert's time of arrival is exponential with its popularity as
// the rate, and the first top_k win, which is successive sampling without replacement. In
// logarithms, so that no popularity is too small.
void draw_weighted(const Layer& layer, const std::vector<double>& log_popularity,
                   RandomWords& words, Ids& out) {
  std::vector<std::pair<double, std::int32_t>> arrivals;
  arrivals.reserve(log_popularity.size());
  for (std::size_t e = 0; e < log_popularity.size(); ++e) {
    const double log_time = portable_log(-portable_log(words.unit())) - log_popularity[e];
    arrivals.emplace_back(log_time, static_cast<std::int32_t>(e));
  }
  std::partial_sort(arrivals.begin(), arrivals.begin() + layer.top_k, arrivals.end());
  for (std::int64_t t = 0; t < layer.top_k; ++t) {
    out.push_back(arrivals[static_cast<std::size_t>(t)].second);
  }
}

std::vector<double> zipf_popularity(const Layer& layer, double s, std::uint64_t seed) {
  RandomWords words(RandomStream(seed, Purpose::expert_popularity, 0));
  const Ids order = permutation(layer.experts, words);
  std::vector<double> log_popularity(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    log_popularity[static_cast<std::size_t>(order[rank])] =
        -s * portable_log(static_cast<double>(rank + 1));
  }
  return log_popularity;
}

// Marsaglia and Tsang (2000), "A simple method for generating gamma variables", for shape >= 1.
double gamma_variate(double shape, RandomWords& words) {
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal_quantile(words.unit());
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    const double u = words.unit();
    if (v > 0 && portable_log(u) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
  }
}

// A Dirichlet draw is gamma variates over their sum, which does not matter here. For shape a < 1,
// gamma(a) = gamma(a + 1) * U^(1/a).
std::vector<double> dirichlet_popularity(const Layer& layer, double a, std::uint64_t seed) {
  RandomWords words(RandomStream(seed, Purpose::expert_popularity, 1));
  std::vector<double> log_popularity;
  for (std::int64_t e = 0; e < layer.experts; ++e) {
    log_popularity.push_back(portable_log(gamma_variate(a + 1, words)) +
                             portable_log(words.unit()) / a);
  }
  return log_popularity;
}

Ids draw_balanced(const Layer& layer, std::int64_t tokens, RandomWords& words) {
  const Ids order = permutation(layer.experts, words);
  Ids out;
  for (std::int64_t i = 0; i < tokens * layer.top_k; ++i) {
    out.push_back(order[static_cast<std::size_t>(i % layer.experts)]);
  }
  return out;
}

Ids draw_single(const Layer& layer, std::int64_t tokens) {
  Ids experts;
  for (const bool held : {true, false}) {
    for (std::int32_t e = 0; e < layer.experts; ++e) {
      if ((layer.local_id(e) >= 0) == held) experts.push_back(e);
    }
  }
  Ids out;
  for (std::int64_t m = 0; m < tokens; ++m) {
    out.insert(out.end(), experts.begin(), experts.begin() + layer.top_k);
  }
  return out;
}

Ids draw_trace(const Layer& layer, const RoutingLaw& law, std::int64_t tokens,
               std::uint64_t stream) {
  const std::uint64_t rows = law.trace.size() / static_cast<std::size_t>(layer.top_k);
  if (rows == 0) throw InputError("routing", "the trace has no rows", "one line of ids per token");
  const std::uint64_t first = (stream % rows) * (static_cast<std::uint64_t>(tokens) % rows) % rows;
  Ids out;
  for (std::uint64_t m = 0; m < static_cast<std::uint64_t>(tokens); ++m) {
    const auto row =
        law.trace.begin() + static_cast<std::ptrdiff_t>((first + m) % rows) * layer.top_k;
    out.insert(out.end(), row, row + layer.top_k);
  }
  return out;
}

}  // namespace

Ids permutation(std::int64_t n, RandomWords& words) {
  Ids order(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[words.below(static_cast<std::uint32_t>(i))]);
  }
  return order;
}

Ids draw_ids(const Layer& layer, const RoutingLaw& law, std::int64_t tokens, std::uint64_t seed,
             std::uint64_t stream) {
  using Kind = RoutingLaw::Kind;
  if (law.kind == Kind::trace) return draw_trace(layer, law, tokens, stream);
  if (layer.top_k < 1 || layer.top_k > layer.experts) {
    throw InputError("layer",
                     "top_k " + std::to_string(layer.top_k) + " of " +
                         std::to_string(layer.experts) + " experts",
                     "distinct experts need 1 <= top_k <= experts");
  }
  RandomWords words(RandomStream(seed, Purpose::topk_ids, stream));
  if (law.kind == Kind::balanced) return draw_balanced(layer, tokens, words);
  if (law.kind == Kind::single) return draw_single(layer, tokens);
  std::vector<double> log_popularity;
  if (law.kind == Kind::zipf) log_popularity = zipf_popularity(layer, law.parameter, seed);
  if (law.kind == Kind::dirichlet)
    log_popularity = dirichlet_popularity(layer, law.parameter, seed);
  Ids out;
  out.reserve(static_cast<std::size_t>(tokens * layer.top_k));
  for (std::int64_t m = 0; m < tokens; ++m) {
    if (log_popularity.empty())
      draw_uniform(layer, words, out);
    else
      draw_weighted(layer, log_popularity, words, out);
  }
  return out;
}

}  // namespace moegauge
