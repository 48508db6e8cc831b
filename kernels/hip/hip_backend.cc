// The AMD backend: kernels compiled ahead for the architectures that there is device code for, run
// through a runtime that is opened where it is there.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/hip/layer_plan.h"
#include "kernels/hip/layer_rules.h"
#include "kernels/hip/runtime/gpu.h"

namespace moegauge {
namespace {

using namespace hip;  // NOLINT(google-build-using-namespace): this file is the backend's face

// Code objects lie beside the binary.
std::string code_folder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string();
}

const Expected<std::shared_ptr<const Gpu>, std::string>& gpu() {
  static const Expected<std::shared_ptr<const Gpu>, std::string> opened =
      open_gpu(hip_api(), code_folder());
  return opened;
}

class HipBackend final : public Backend {
 public:
  std::string_view name() const override { return "hip"; }

  Availability availability() const override {
    if (!gpu()) {
      return {.present = false,
              .detail = gpu().error(),
              .remedy =
                  "an AMD GPU (gfx942, gfx950 or gfx1201), ROCm's runtime (libamdhip64.so) on "
                  "the loader's path, and a build with clang++-22 or amdclang++"};
    }
    return {.present = true,
            .detail = (*gpu())->description().name + ", " +
                      std::string((*gpu())->architecture().name) + ", " +
                      (*gpu())->description().runtime};
  }

  Device device() const override {
    if (!gpu()) return {};
    std::string name = (*gpu())->description().name;
    std::ranges::replace(name, ' ', '_');
    return {.name = name,
            .arch = std::string((*gpu())->architecture().name),
            .memory_bytes = (*gpu())->description().memory_bytes,
            .tuned_class = std::string((*gpu())->architecture().name)};
  }

  std::map<std::string, std::string> toolchain() const override {
    if (!gpu()) return {};
    return {{"driver", (*gpu())->description().runtime}};
  }

  bool serves_graphs() const override { return gpu() && (*gpu())->serves_graphs(); }

  // First what the kernels serve nowhere, then what this machine lacks.
  std::optional<Refusal> refuses(const Problem& problem) const override {
    if (!gpu()) {
      std::optional<Refusal> refusal;
      for (const Architecture& a : architectures()) {
        refusal = refuses_layer(problem, a);
        if (!refusal) return Refusal{RefusalReason::device_absent, gpu().error()};
      }
      return refusal;
    }
    if (auto refusal = refuses_layer(problem, (*gpu())->architecture())) return refusal;
    const std::int64_t bytes = weight_set_bytes(problem, format(problem));
    if (bytes <= (*gpu())->description().memory_bytes) return std::nullopt;
    return Refusal{RefusalReason::memory, "the layer's weights take " + std::to_string(bytes) +
                                              " bytes and the device has " +
                                              std::to_string((*gpu())->description().memory_bytes)};
  }

  std::optional<Refusal> refuses_on(std::string_view arch, const Problem& problem) const override {
    if (const Architecture* known = find_architecture(arch)) return refuses_layer(problem, *known);
    return Refusal{RefusalReason::instruction_set, "no kernels for " + std::string(arch)};
  }

  Config default_config(const Problem& problem) const override {
    if (refuses(problem)) return {};
    return to_config(
        default_tile((*gpu())->architecture(), format(problem), problem.layer, problem.tokens),
        format(problem));
  }

  std::optional<Refusal> refuses_config(const Problem& problem,
                                        const Config& config) const override {
    if (auto refusal = refuses(problem)) return refusal;
    const auto parsed = parse_config((*gpu())->architecture(), format(problem), problem.layer,
                                     problem.tokens, config);
    return parsed ? std::nullopt : std::optional(parsed.error());
  }

  std::vector<Config> candidate_configs(const Problem& problem) const override {
    if (refuses(problem)) return {};
    std::vector<Config> configs;
    for (Tile tile : tiles((*gpu())->architecture(), format(problem))) {
      for (const int group : {4, 1, 8}) {
        tile.group = group;
        configs.push_back(to_config(tile, format(problem)));
      }
    }
    return configs;
  }

  std::string_view config_folder() const override { return "kernels/hip/configs"; }

  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override {
    if (auto refusal = refuses(problem))
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    std::unique_ptr<LoadedLayer> loaded;
    auto fault = guarded([&] {
      loaded = load_layer(*gpu(), problem, format(problem), experts, std::max(weight_sets, 1),
                          std::to_string((*gpu())->description().code_hash));
    });
    if (fault) return Unexpected{std::move(*fault)};
    return loaded;
  }

  // Nothing measures them yet: 0 says so.
  Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const override {
    if (auto refusal = refuses(problem))
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    return Ceilings{};
  }

 private:
  static LayerFormat format(const Problem& problem) {
    return *format_of(problem, (*gpu())->architecture());
  }
};

}  // namespace

const Backend& hip_backend() {
  static const HipBackend backend;
  return backend;
}

}  // namespace moegauge
