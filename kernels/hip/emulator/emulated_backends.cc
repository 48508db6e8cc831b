#include "kernels/hip/emulator/emulated_backends.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/hip/emulator/emulated_processor.h"
#include "kernels/hip/layer_plan.h"
#include "kernels/hip/layer_rules.h"

namespace moegauge {
namespace {

using namespace hip;  // NOLINT(google-build-using-namespace): this file is the backends' face

class EmulatedBackend final : public Backend {
 public:
  EmulatedBackend(const Architecture& architecture, std::uint64_t seed)
      : name_("hip-emulated:" + std::string(architecture.name)),
        processor_(std::make_shared<EmulatedProcessor>(architecture, seed)) {}

  std::string_view name() const override { return name_; }
  Availability availability() const override {
    return {.present = true, .detail = "emulated on the CPU, for tests"};
  }
  Device device() const override {
    return {.name = "emulator", .arch = std::string(architecture().name), .units = 1};
  }
  std::optional<Refusal> refuses(const Problem& problem) const override {
    return refuses_layer(problem, architecture());
  }
  Config default_config(const Problem& problem) const override {
    const auto format = format_of(problem, architecture());
    if (!format) return {};
    return to_config(default_tile(architecture(), *format, problem.layer, problem.tokens), *format);
  }
  std::optional<Refusal> refuses_config(const Problem& problem,
                                        const Config& config) const override {
    if (auto refusal = refuses(problem)) return refusal;
    const auto parsed = parse_config(architecture(), *format_of(problem, architecture()),
                                     problem.layer, problem.tokens, config);
    return parsed ? std::nullopt : std::optional(parsed.error());
  }
  std::string_view config_folder() const override { return {}; }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override {
    if (auto refusal = refuses(problem))
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    std::unique_ptr<LoadedLayer> loaded;
    auto fault = guarded([&] {
      loaded = load_layer(processor_, problem, *format_of(problem, architecture()), experts,
                          std::max(weight_sets, 1), "emulated");
    });
    if (fault) return Unexpected{std::move(*fault)};
    return loaded;
  }
  Expected<Ceilings, Fault> measure_ceilings(const Problem&) const override { return Ceilings{}; }

 private:
  const Architecture& architecture() const { return processor_->architecture(); }

  std::string name_;
  std::shared_ptr<const Processor> processor_;
};

}  // namespace

std::span<const Backend* const> emulated_backends() {
  static const std::vector<const Backend*> all = [] {
    std::vector<const Backend*> made;
    for (const Architecture& a : architectures()) {
      static std::vector<std::unique_ptr<EmulatedBackend>> owned;
      made.push_back(owned.emplace_back(std::make_unique<EmulatedBackend>(a, 0)).get());
    }
    return made;
  }();
  return all;
}

std::unique_ptr<const Backend> make_emulated_backend(std::string_view architecture,
                                                     std::uint64_t seed) {
  const Architecture* known = find_architecture(architecture);
  return known == nullptr ? nullptr : std::make_unique<EmulatedBackend>(*known, seed);
}

}  // namespace moegauge
