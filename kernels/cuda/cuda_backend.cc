// The CUDA backend: our own kernels, compiled at run time for the exact shape, scheme and config.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/ceilings.h"
#include "kernels/cuda/cuda_plan.h"
#include "kernels/cuda/layer_program.h"
#include "kernels/cuda/runtime/compiler.h"
#include "kernels/cuda/runtime/telemetry.h"
#include "kernels/cuda/schemes/cuda_scheme.h"
#include "kernels/cuda/tile_config.h"

namespace moegauge {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): this file is the backend's face

// Everything that must be there before a layer can run, or the first thing that is not.
Expected<const Gpu*, Missing> find_gpu() {
  if (!driver()) return Unexpected{driver().error()};
  int count = 0;
  if (const CUresult result = driver()->device_get_count(&count);
      result != CUDA_SUCCESS || count == 0) {
    return Unexpected{Missing{"driver without a device"}};
  }
  if (const auto compiler = compiler_version(); !compiler) return Unexpected{compiler.error()};
  const Gpu* gpu = nullptr;
  if (const auto fault = guarded([&] { gpu = &Gpu::get(0); })) {
    return Unexpected{Missing{fault->sentence}};
  }
  return gpu;
}

const Expected<const Gpu*, Missing>& gpu() {
  static const Expected<const Gpu*, Missing> found = find_gpu();
  return found;
}

std::map<std::string, std::string> compiler_and_driver() {
  std::map<std::string, std::string> versions;
  if (const auto compiler = compiler_version()) versions["compiler"] = *compiler;
  int version = 0;  // 12080 is CUDA 12.8
  if (driver() && driver()->driver_get_version(&version) == CUDA_SUCCESS) {
    versions["driver"] =
        "cuda " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  return versions;
}

std::string served_schemes(const Layer& layer) {
  std::string names;
  for (const std::string_view name : scheme_names()) {
    const auto scheme = make_scheme(name);
    if (!scheme || find_scheme(*scheme, layer) == nullptr) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

Refusal shape_refusal(const char* what, std::int64_t value, const char* rule) {
  return {RefusalReason::shape,
          std::string(what) + " is " + std::to_string(value) + "; the kernels need " + rule};
}

// Static shared memory of the prepare kernel (device/prepare.cuh): at least two rows of x, three
// tables of experts and up to four of a chunk's 256 pairs.
std::int64_t prepare_bytes(const Layer& layer, const CudaScheme& scheme) {
  return 2 * layer.hidden_size * scheme.element_bytes + 3 * (layer.local_experts() + 1) * 4 +
         4 * 256 * 4 + 256;
}

std::optional<Refusal> refuses_shape(const Layer& layer, const CudaScheme& scheme) {
  constexpr std::int64_t static_shared = 49152;  // of a block, on every device
  if (layer.hidden_size % 16 != 0) {
    return shape_refusal("hidden_size", layer.hidden_size, "a multiple of 16 (16-byte rows)");
  }
  // Otherwise a scale's block of up ends inside the rows that a thread holds.
  if (scheme.block_scales() && layer.gate_up_order == GateUpOrder::concatenated &&
      layer.intermediate_size % 8 != 0) {
    return shape_refusal("intermediate_size", layer.intermediate_size,
                         "a multiple of 8 with block scales and gate and up concatenated");
  }
  if (layer.top_k > 32) return shape_refusal("top_k", layer.top_k, "at most 32");
  if (layer.local_experts() > 1024) {
    return shape_refusal("the number of local experts", layer.local_experts(), "at most 1024");
  }
  if (const std::int64_t bytes = prepare_bytes(layer, scheme); bytes > static_shared) {
    return Refusal{RefusalReason::shape, "hidden_size " + std::to_string(layer.hidden_size) +
                                             " with " + std::to_string(layer.local_experts()) +
                                             " local experts needs " + std::to_string(bytes) +
                                             " bytes of shared memory to group the tokens; a " +
                                             "block has " + std::to_string(static_shared)};
  }
  if (layer.local_experts() < 1) {
    return shape_refusal("the number of local experts", layer.local_experts(), "at least 1");
  }
  return std::nullopt;
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
  if (layer.router_weight_on_input && layer.top_k != 1) {
    return Refusal{RefusalReason::router_weight_on_input, "router weight on input with top_k " +
                                                              std::to_string(layer.top_k) +
                                                              "; it is defined for top_k 1 only"};
  }
  if (layer.router_weight_on_input && layer.expert_bias) {
    return Refusal{RefusalReason::expert_bias,
                   "router weight on input is not defined for experts with biases"};
  }
  return refuses_shape(layer, *find_scheme(*problem.scheme, layer));
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  Availability availability() const override {
    if (!gpu()) {
      return {.present = false,
              .detail = gpu().error().sentence,
              .remedy =
                  "an NVIDIA driver (libcuda.so.1), a device, and the CUDA toolkit's NVRTC "
                  "(libnvrtc.so) on the loader's path"};
    }
    if (capability() != 90) {
      return {.present = false,
              .detail = (*gpu())->name() + " has compute capability " + capability_name(),
              .remedy =
                  "a device of compute capability 9.0 (Hopper); the kernels use "
                  "instructions that no other has"};
    }
    return {.present = true, .detail = (*gpu())->name() + ", " + *compiler_version()};
  }

  Device device() const override {
    if (!gpu()) return {};
    std::string name = (*gpu())->name();
    std::ranges::replace(name, ' ', '_');
    return {.name = name,
            .arch = "sm_" + std::to_string(capability()),
            .memory_bytes = (*gpu())->memory_bytes(),
            .last_level_cache_bytes = (*gpu())->l2_bytes(),
            .units = (*gpu())->multiprocessors()};
  }

  std::vector<unsigned> other_processes() const override {
    if (!gpu()) return {};
    const auto telemetry = Telemetry::open((*gpu())->pci_bus_id());
    if (!telemetry) return {};
    return telemetry->other_processes().value_or(std::vector<unsigned>{});
  }

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
    if (bytes > (*gpu())->memory_bytes()) {
      return Refusal{RefusalReason::memory, "the layer's weights take " + std::to_string(bytes) +
                                                " bytes and the device has " +
                                                std::to_string((*gpu())->memory_bytes())};
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
                                     (*gpu())->shared_bytes_per_block());
    return parsed ? std::nullopt : std::optional(parsed.error());
  }

  std::vector<Config> candidate_configs(const Problem& problem) const override {
    if (refuses(problem)) return {};
    std::vector<Config> configs;
    for (const TileConfig& tile :
         candidate_tiles(problem.layer, *find_scheme(*problem.scheme, problem.layer),
                         problem.tokens, (*gpu())->shared_bytes_per_block())) {
      configs.push_back(to_config(tile));
    }
    return configs;
  }

  void compile_ahead(const Problem& problem, const Config& config) const override {
    if (refuses(problem)) return;
    const CudaScheme& scheme = *find_scheme(*problem.scheme, problem.layer);
    const auto parsed = parse_config(config, problem.layer, scheme, problem.tokens,
                                     (*gpu())->shared_bytes_per_block());
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
      (*gpu())->make_current();
      loaded = load_layer(**gpu(), problem, *find_scheme(*problem.scheme, problem.layer), experts,
                          std::max(weight_sets, 1));
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
      (*gpu())->make_current();
      ceilings = cuda::measure_ceilings(**gpu(), *find_scheme(*problem.scheme, problem.layer));
    });
    if (fault) return Unexpected{std::move(*fault)};
    return ceilings;
  }

 private:
  static int capability() { return (*gpu())->compute_capability(); }
  static std::string capability_name() {
    return std::to_string(capability() / 10) + "." + std::to_string(capability() % 10);
  }
};

}  // namespace

const Backend& cuda_backend() {
  static const CudaBackend backend;
  return backend;
}

}  // namespace moegauge
