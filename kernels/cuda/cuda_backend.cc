// The CUDA backend: our own kernels, compiled at run time for the exact shape, scheme and config.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/cuda_plan.h"
#include "kernels/cuda/layer_program.h"
#include "kernels/cuda/schemes/cuda_scheme.h"
#include "kernels/cuda/tile_config.h"
#include "kernels/nvidia/runtime/ceilings.h"
#include "kernels/nvidia/runtime/prepare.h"
#include "kernels/nvidia/runtime/this_gpu.h"

namespace moegauge {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): this file is the backend's face

std::string served_schemes(const Layer& layer) {
  std::string names;
  for (const std::string_view name : scheme_names()) {
    const auto scheme = make_scheme(name);
    if (!scheme || find_scheme(*scheme, layer) == nullptr) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

std::optional<Refusal> refuses_shape(const Layer& layer, const CudaScheme& scheme) {
  // Otherwise a scale's block of up ends inside the rows that a thread holds.
  if (scheme.block_scales() && layer.gate_up_order == GateUpOrder::concatenated &&
      layer.intermediate_size % 8 != 0) {
    return shape_refusal("intermediate_size", layer.intermediate_size,
                         "a multiple of 8 with block scales and gate and up concatenated");
  }
  return refuses_prepare(layer, scheme.element_bytes);
}

std::optional<Refusal> refuses_layer(const Problem& problem) {
  const Layer& layer = problem.layer;
  if (const SchemeTraits traits = problem.scheme->traits();
      traits.weight.element == Element::e4m3fnuz ||
      traits.activation.element == Element::e4m3fnuz) {
    return Refusal{
        RefusalReason::scheme,
        "Hopper's FP8 instructions read OCP E4M3, which no scale turns into FNUZ: with it "
        "doubled 240 has no code, with it kept odd multiples of 2^-10 have none; the OCP "
        "flavour of " +
            problem.scheme->config_scheme() + " is served"};
  }
  if (find_scheme(*problem.scheme, layer) == nullptr) {
    return Refusal{RefusalReason::scheme, "the cuda backend has no kernel for scheme " +
                                              problem.scheme->name() + "; it serves " +
                                              served_schemes(layer)};
  }
  if (problem.scheme->traits().weight.group_index && layer.whole_intermediate_size != 0) {
    return Refusal{RefusalReason::shape,
                   "under tensor parallelism act_order leaves w2 groups of unequal size, and the "
                   "cuda backend packs whole groups"};
  }
  if (auto refusal = refuses_router_weight(layer)) return refusal;
  return refuses_shape(layer, *find_scheme(*problem.scheme, layer));
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  Availability availability() const override { return hopper_availability(); }
  Device device() const override { return this_device(); }
  std::vector<unsigned> other_processes() const override { return other_processes_on_gpu(); }
  std::map<std::string, std::string> toolchain() const override { return compiler_and_driver(); }

  bool serves_graphs() const override { return true; }

  // First what the kernels cannot serve anywhere, then what this machine lacks: the answer to
  // "would it serve" does not depend on where it is asked.
  std::optional<Refusal> refuses(const Problem& problem) const override {
    if (auto refusal = refuses_layer(problem)) return refusal;
    if (const Availability here = availability(); !here.present) {
      return Refusal{RefusalReason::device_absent, here.detail};
    }
    const std::int64_t bytes =
        weight_set_bytes(problem, *find_scheme(*problem.scheme, problem.layer));
    if (bytes > (*this_gpu())->memory_bytes()) {
      return Refusal{RefusalReason::memory, "the layer's weights take " + std::to_string(bytes) +
                                                " bytes and the device has " +
                                                std::to_string((*this_gpu())->memory_bytes())};
    }
    return std::nullopt;
  }

  Config default_config(const Problem& problem) const override {
    const CudaScheme* scheme = find_scheme(*problem.scheme, problem.layer);
    if (scheme == nullptr) return {};
    return to_config(heuristic_config(problem.layer, *scheme, problem.tokens));
  }

  std::optional<Refusal> refuses_config(const Problem& problem,
                                        const Config& config) const override {
    if (auto refusal = refuses(problem)) return refusal;
    const CudaScheme* scheme = find_scheme(*problem.scheme, problem.layer);
    const auto parsed = parse_config(config, problem.layer, *scheme, problem.tokens,
                                     (*this_gpu())->shared_bytes_per_block());
    return parsed ? std::nullopt : std::optional(parsed.error());
  }

  std::vector<Config> candidate_configs(const Problem& problem) const override {
    if (refuses(problem)) return {};
    std::vector<Config> configs;
    for (const TileConfig& tile :
         candidate_tiles(problem.layer, *find_scheme(*problem.scheme, problem.layer),
                         problem.tokens, (*this_gpu())->shared_bytes_per_block())) {
      configs.push_back(to_config(tile));
    }
    return configs;
  }

  void compile_ahead(const Problem& problem, const Config& config) const override {
    if (refuses(problem)) return;
    const CudaScheme& scheme = *find_scheme(*problem.scheme, problem.layer);
    const auto parsed = parse_config(config, problem.layer, scheme, problem.tokens,
                                     (*this_gpu())->shared_bytes_per_block());
    if (parsed) compile_program(problem.layer, scheme, *parsed, problem.tokens);
  }

  std::string_view config_folder() const override { return "kernels/cuda/configs"; }

  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override {
    if (auto refusal = refuses(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    std::unique_ptr<LoadedLayer> loaded;
    auto fault = guarded([&] {
      (*this_gpu())->make_current();
      loaded = load_layer(**this_gpu(), problem, *find_scheme(*problem.scheme, problem.layer),
                          experts, std::max(weight_sets, 1));
    });
    if (fault) return Unexpected{std::move(*fault)};
    return loaded;
  }

  Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const override {
    if (auto refusal = refuses(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    Ceilings ceilings;
    auto fault = guarded([&] {
      (*this_gpu())->make_current();
      ceilings = cuda::measure_ceilings(**this_gpu(),
                                        find_scheme(*problem.scheme, problem.layer)->dot_kind());
    });
    if (fault) return Unexpected{std::move(*fault)};
    return ceilings;
  }
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace moegauge
