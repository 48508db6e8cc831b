// The library baseline: one cuBLASLt GEMM for each expert that has rows, with kernels of ours
// around them.
#include <algorithm>

#include "kernels/backend.h"
#include "kernels/cublaslt/layer_plan.h"
#include "kernels/cublaslt/library.h"
#include "kernels/cublaslt/program.h"
#include "kernels/cublaslt/weights.h"
#include "kernels/nvidia/runtime/ceilings.h"
#include "kernels/nvidia/runtime/prepare.h"
#include "kernels/nvidia/runtime/this_gpu.h"

namespace moegauge {
namespace {

using namespace cublaslt;  // NOLINT(google-build-using-namespace): this file is the backend's face
using cuda::guarded;
using cuda::this_gpu;

std::string served_schemes() {
  std::string names;
  for (const std::string_view name : scheme_names()) {
    const auto scheme = make_scheme(name);
    if (!scheme || find_scheme(*scheme) == nullptr) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

// The library's matrix instructions need rows and outputs of whole 16 bytes.
std::optional<Refusal> refuses_shape(const Layer& layer, const LibraryScheme& scheme) {
  const std::int64_t n = layer.intermediate_size;
  if (scheme.element_bytes == 1 && n % 16 != 0) {
    return cuda::shape_refusal("intermediate_size", n,
                               "a multiple of 16 (cuBLASLt's FP8 GEMMs contract multiples of 16)");
  }
  if (n % 8 != 0) {
    return cuda::shape_refusal("intermediate_size", n, "a multiple of 8 (16-byte rows)");
  }
  return cuda::refuses_prepare(layer, scheme.element_bytes);
}

std::optional<Refusal> refuses_layer(const Problem& problem) {
  const LibraryScheme* scheme = find_scheme(*problem.scheme);
  if (scheme == nullptr) {
    return Refusal{RefusalReason::scheme, "cuBLASLt has no GEMM for scheme " +
                                              problem.scheme->name() +
                                              " on Hopper; with it are served " + served_schemes()};
  }
  if (auto refusal = cuda::refuses_router_weight(problem.layer)) return refusal;
  return refuses_shape(problem.layer, *scheme);
}

std::optional<Refusal> refuses_library(const LibraryScheme& scheme) {
  if (library_version() >= scheme.least_version()) return std::nullopt;
  return Refusal{RefusalReason::instruction_set,
                 library_name() + " has no scales per row or block on Hopper; 12.9.0 has"};
}

class CublasLtBackend final : public Backend {
 public:
  std::string_view name() const override { return "cublaslt"; }

  Availability availability() const override {
    Availability here = cuda::hopper_availability();
    if (!here.present) return here;
    if (!library()) {
      return {.present = false,
              .detail = library().error().sentence,
              .remedy = "the CUDA toolkit's cuBLASLt (libcublasLt.so) on the loader's path"};
    }
    here.detail += ", " + library_name();
    return here;
  }

  Device device() const override { return cuda::this_device(); }
  std::vector<unsigned> other_processes() const override { return cuda::other_processes_on_gpu(); }
  std::map<std::string, std::string> toolchain() const override {
    return cuda::compiler_and_driver();
  }
  bool serves_graphs() const override { return true; }

  // First what the kernels cannot serve anywhere, then what this machine lacks: the answer to
  // "would it serve" does not depend on where it is asked.
  std::optional<Refusal> refuses(const Problem& problem) const override {
    if (auto refusal = refuses_layer(problem)) return refusal;
    if (const Availability here = availability(); !here.present) {
      return Refusal{RefusalReason::device_absent, here.detail};
    }
    const LibraryScheme& scheme = *find_scheme(*problem.scheme);
    if (auto refusal = refuses_library(scheme)) return refusal;
    const std::int64_t bytes = weight_set_bytes(problem, scheme);
    if (bytes > (*this_gpu())->memory_bytes()) {
      return Refusal{RefusalReason::memory, "the layer's weights take " + std::to_string(bytes) +
                                                " bytes and the device has " +
                                                std::to_string((*this_gpu())->memory_bytes())};
    }
    return std::nullopt;
  }

  Config default_config(const Problem&) const override { return {}; }
  std::optional<Refusal> refuses_config(const Problem& problem,
                                        const Config& config) const override {
    if (!config.values.empty()) {
      return Refusal{RefusalReason::config_unknown_key,
                     "the cublaslt backend has no config key " + config.values.begin()->first +
                         "; the library chooses its algorithms by itself"};
    }
    return refuses(problem);
  }
  void compile_ahead(const Problem& problem, const Config&) const override {
    if (!refuses(problem)) compile_program(problem, *find_scheme(*problem.scheme));
  }
  std::string_view config_folder() const override { return ""; }

  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override {
    if (auto refusal = refuses(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    std::unique_ptr<LoadedLayer> loaded;
    auto fault = guarded([&] {
      (*this_gpu())->make_current();
      loaded = load_layer(**this_gpu(), problem, *find_scheme(*problem.scheme), experts,
                          std::max(weight_sets, 1));
    });
    if (fault) return Unexpected{std::move(*fault)};
    return loaded;
  }

  Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const override {
    if (auto refusal = refuses(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    const bool fp8 = find_scheme(*problem.scheme)->element_bytes == 1;
    Ceilings ceilings;
    auto fault = guarded([&] {
      (*this_gpu())->make_current();
      ceilings =
          cuda::measure_ceilings(**this_gpu(), fp8 ? cuda::DotKind::e4m3 : cuda::DotKind::bf16);
    });
    if (fault) return Unexpected{std::move(*fault)};
    return ceilings;
  }
};

}  // namespace

const Backend& cublaslt_backend() {
  static const CublasLtBackend backend;
  return backend;
}

}  // namespace moegauge
