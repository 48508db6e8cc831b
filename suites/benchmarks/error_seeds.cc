// What a right kernel adds to the error, over many seeds: the numbers behind the limits that ship
// (docs/method.md). Prints JSON.
//
//   error_seeds [BACKEND [SEEDS [SCHEME...]]]     cpu, 20, every scheme
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/check.h"
#include "harness/measure/prepare.h"
#include "kernels/backend.h"
#include "reference/base/thread_pool.h"

namespace moegauge {
namespace {

using Json = nlohmann::ordered_json;

// Few rows, where one unlucky rounding counts most, up to enough for every expert.
constexpr std::array<std::int64_t, 4> kTokens = {1, 4, 16, 64};

// Ragged against blocks of 128 in N, but for the second, which is a rank of Qwen3-30B-A3B under TP2
// with an eighth of the experts; the last sums as deep as the deepest of suites/models.
constexpr std::array kLayers = {
    Layer{.experts = 8, .top_k = 2, .hidden_size = 1024, .intermediate_size = 448},
    Layer{.experts = 16, .top_k = 8, .hidden_size = 2048, .intermediate_size = 384},
    Layer{.experts = 2, .top_k = 1, .hidden_size = 7168, .intermediate_size = 320}};

Layer layer_for(Layer layer, const Scheme& scheme) {
  layer.dtype = scheme.traits().only.value_or(layer.dtype);
  return layer;
}

// Ends the program where something fails: there is no result then.
template <typename T>
T must(Expected<T, Fault> value) {
  if (value) return std::move(value).value();
  std::cerr << "error_seeds: " << value.error().sentence << '\n';
  std::exit(1);
}
void must(const std::optional<Fault>& fault) {
  if (!fault) return;
  std::cerr << "error_seeds: " << fault->sentence << '\n';
  std::exit(1);
}

struct Run {
  Numerics numerics;
  ErrorReport error;
};

Run run_once(const Backend& backend, const Problem& problem, LoadedLayer& loaded,
             const ExpertSource& experts, Distribution distribution, std::uint64_t seed) {
  const RoutingLaw law = parse_routing_law("uniform", problem.layer);
  const CheckInputs inputs = make_check_inputs(problem.layer, distribution, law, problem.tokens,
                                               seed, problem.scheme.get());
  const auto plan = must(loaded.plan(problem.tokens, backend.default_config(problem), 1));
  must(plan->set_inputs(0, inputs.repeated.inputs.view()));
  must(plan->poison());
  must(plan->run({}));
  std::vector<std::uint16_t> y(
      static_cast<std::size_t>(problem.tokens * problem.layer.hidden_size));
  must(plan->fetch(0, y));
  const Numerics& numerics = plan->identity().numerics;
  const Truth truth = compute_truth(problem.layer, *problem.scheme, numerics, experts,
                                    inputs.pool.view(), ThreadPool::usable_processors());
  return {numerics, measure_errors(problem.layer, y, truth, inputs.repeated.index)};
}

struct Worst {
  ErrorMetrics error;
  double total_factor = 0;  // total over quantization, where that counts
  ErrorLimits limits;

  void add(const Run& run, const Problem& problem) {
    const bool reduced = run.numerics.accumulate == Accumulate::reduced;
    limits = problem.scheme->error_limits(problem.layer.dtype, reduced);
    const ErrorMetrics& found = run.error.implementation;
    error.relative_l2 = std::max(error.relative_l2, found.relative_l2);
    error.worst_token = std::max(error.worst_token, found.worst_token);
    error.non_finite += found.non_finite;
    if (const double cost = run.error.quantization.relative_l2; limits.total(cost)) {
      total_factor = std::max(total_factor, run.error.total.relative_l2 / cost);
    }
  }
  Json json() const {
    return {{"relative_l2", error.relative_l2},
            {"worst_token", error.worst_token},
            {"non_finite", error.non_finite},
            {"total_factor", total_factor}};
  }
};

// The worst of all seeds by number of tokens; a seed is one layer, and other rows at each number.
std::array<Worst, kTokens.size()> worst_of(const Backend& backend, Problem problem,
                                           Distribution distribution, std::uint64_t seeds) {
  std::array<Worst, kTokens.size()> worst;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto experts = generated_experts(problem.layer, problem.scheme, distribution, seed);
    const auto loaded = must(backend.load(problem, *experts, 1));
    for (std::size_t i = 0; i < kTokens.size(); ++i) {
      problem.tokens = kTokens[i];
      const std::uint64_t draw = seed * kTokens.size() + i;
      worst[i].add(run_once(backend, problem, *loaded, *experts, distribution, draw), problem);
    }
  }
  return worst;
}

Json worst_errors(const Backend& backend, const Problem& problem, std::uint64_t seeds) {
  Json result;
  ErrorLimits limits;
  for (const Distribution distribution : {Distribution::gaussian, Distribution::heavy_tail,
                                          Distribution::uniform, Distribution::degenerate}) {
    Json& by_tokens = result[std::string(to_string(distribution))];
    const auto worst = worst_of(backend, problem, distribution, seeds);
    for (std::size_t i = 0; i < kTokens.size(); ++i) {
      by_tokens[std::to_string(kTokens[i])] = worst[i].json();
    }
    limits = worst.back().limits;
  }
  result["limits"] = {{"relative_l2", limits.relative_l2},
                      {"worst_token", limits.worst_token},
                      {"total_factor", limits.total_factor}};
  return result;
}

Json layer_json(const Backend& backend, const Layer& layer, std::uint64_t seeds,
                std::span<const std::string> names) {
  Json schemes;
  for (const std::string& name : names) {
    const std::shared_ptr<const Scheme> scheme = make_scheme(name);
    const Problem problem{layer_for(layer, *scheme), scheme, kTokens.back()};
    if (backend.refuses(problem)) continue;
    schemes[name] = worst_errors(backend, problem, seeds);
    std::cerr << name << '\n';
  }
  return {{"experts", layer.experts},
          {"top_k", layer.top_k},
          {"hidden_size", layer.hidden_size},
          {"intermediate_size", layer.intermediate_size},
          {"worst_of_implementation_error", schemes}};
}

int measure(const std::string& backend_name, std::uint64_t seeds,
            std::span<const std::string> names) {
  const auto backends = all_backends();
  const auto backend = std::ranges::find(backends, backend_name, &Backend::name);
  if (backend == backends.end() || !(*backend)->availability().present) {
    std::cerr << "error_seeds: no backend " << backend_name << " here\n";
    return 1;
  }
  Json layers;
  for (const Layer& layer : kLayers) layers.push_back(layer_json(**backend, layer, seeds, names));
  std::cout << Json{{"backend", backend_name},
                    {"device", device_key((*backend)->device())},
                    {"seeds", seeds},
                    {"layers", layers}}
                   .dump(1)
            << '\n';
  return 0;
}

}  // namespace
}  // namespace moegauge

int main(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "cpu";
  const std::uint64_t seeds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20;
  std::vector<std::string> names(argv + std::min(argc, 3), argv + argc);
  if (names.empty()) names.assign(moegauge::scheme_names().begin(), moegauge::scheme_names().end());
  return moegauge::measure(backend, seeds, names);
}
