#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "kernels/cpu/ceilings.h"
#include "kernels/cpu/cpu_config.h"
#include "kernels/cpu/cpu_layer.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/ops/cpu_op.h"
#include "reference/base/process_limits.h"

namespace moegauge {
namespace {

using namespace cpu;  // NOLINT(google-build-using-namespace): this file is the backend's face

std::string served_schemes(const Layer& layer) {
  std::string names;
  for (const std::string_view name : scheme_names()) {
    const auto scheme = make_scheme(name);
    if (!scheme || !find_recipe(*scheme, layer)) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

std::optional<Refusal> refuses_layer(const Layer& layer) {
  const auto refuse = [](RefusalReason reason, std::string sentence) {
    return Refusal{reason, std::move(sentence)};
  };
  for (const auto& [name, value] : {std::pair{"experts", layer.experts},
                                    {"top_k", layer.top_k},
                                    {"hidden_size", layer.hidden_size},
                                    {"intermediate_size", layer.intermediate_size}}) {
    if (value < 1) {
      return refuse(RefusalReason::shape,
                    std::string(name) + " is " + std::to_string(value) + "; it must be at least 1");
    }
  }
  if (!layer.expert_map.empty() &&
      static_cast<std::int64_t>(layer.expert_map.size()) != layer.experts) {
    return refuse(RefusalReason::shape,
                  "the expert map has " + std::to_string(layer.expert_map.size()) +
                      " entries for " + std::to_string(layer.experts) + " experts");
  }
  if (layer.router_weight_on_input && layer.top_k != 1) {
    return refuse(RefusalReason::router_weight_on_input, "router weight on input with top_k " +
                                                             std::to_string(layer.top_k) +
                                                             "; it is defined for top_k 1 only");
  }
  if (layer.router_weight_on_input && layer.expert_bias) {
    return refuse(RefusalReason::router_weight_on_input,
                  "router weight on input together with expert biases is not defined");
  }
  return std::nullopt;
}

// By shapes alone, before anything is packed.
std::int64_t packed_bytes(const Problem& problem, const Recipe& recipe,
                          const KernelTable& kernels) {
  const WeightLayout layout =
      kernels.weight_layout(recipe.weight, kernels.dot_unit(recipe.activation));
  return PackedWeights::set_bytes(problem.layer,
                                  MatrixLayout(problem.layer, Role::w13, recipe, layout),
                                  MatrixLayout(problem.layer, Role::w2, recipe, layout));
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(Expected<IsaLevel, std::string> level) : level_(std::move(level)) {}

  std::string_view name() const override { return "cpu"; }

  Availability availability() const override {
    if (!level_) return {false, level_.error()};
    return {true, std::string(to_string(*level_)) + ", " + std::to_string(machine().processors) +
                      (machine().processors == 1 ? " thread" : " threads")};
  }

  Device device() const override {
    return {.name = machine().model,
            .arch = level_ ? std::string(to_string(*level_)) : "",
            .memory_bytes = machine().memory_bytes,
            .last_level_cache_bytes = machine().last_level_cache_bytes,
            .units = machine().processors,
            // Virtual machines hide the model; the instruction set is what decides tile sizes.
            .tuned_class = level_ ? "CPU_" + std::string(to_string(*level_)) : ""};
  }

  std::map<std::string, std::string> toolchain() const override {
    return {{"compiler", __VERSION__}};
  }

  std::optional<Refusal> refuses(const Problem& problem) const override {
    if (!level_) return Refusal{RefusalReason::instruction_set, level_.error()};
    if (auto refusal = refuses_layer(problem.layer)) return refusal;
    const auto served = find_recipe(*problem.scheme, problem.layer);
    if (!served) {
      return Refusal{RefusalReason::scheme,
                     "the cpu backend has no kernel for scheme " + problem.scheme->name() +
                         " with activations in " +
                         (problem.layer.dtype == Dtype::bf16 ? "bf16" : "fp16") + "; it serves " +
                         served_schemes(problem.layer)};
    }
    const std::int64_t bytes = packed_bytes(problem, served->recipe, kernels(*level_));
    if (bytes > machine().memory_bytes) {
      return Refusal{RefusalReason::memory, "the layer's weights take " + std::to_string(bytes) +
                                                " bytes and this process may use " +
                                                std::to_string(machine().memory_bytes)};
    }
    return std::nullopt;
  }

  Config default_config(const Problem& problem) const override {
    const auto served = find_recipe(*problem.scheme, problem.layer);
    if (!served) return {};
    return to_config(heuristic_config(problem.layer, served->recipe, problem.tokens, machine()));
  }

  std::optional<Refusal> refuses_config(const Problem& problem,
                                        const Config& config) const override {
    if (auto refusal = refuses(problem)) return refusal;
    const auto served = find_recipe(*problem.scheme, problem.layer);
    const auto parsed =
        parse_config(config, problem.layer, served->recipe, problem.tokens, machine());
    return parsed ? std::nullopt : std::optional(parsed.error());
  }

  std::vector<Config> candidate_configs(const Problem& problem) const override {
    if (refuses(problem)) return {};
    const auto served = find_recipe(*problem.scheme, problem.layer);
    return cpu::candidate_configs(problem.layer, served->recipe, problem.tokens, machine());
  }

  std::string_view config_folder() const override { return "kernels/cpu/configs"; }

  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override {
    if (auto refusal = refuses(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    const auto served = find_recipe(*problem.scheme, problem.layer);
    const int sets = std::max(weight_sets, 1);
    const std::int64_t bytes = packed_bytes(problem, served->recipe, kernels(*level_)) * sets;
    const std::int64_t available = available_memory();
    const auto too_big = [&] {
      return Unexpected{
          Fault{FaultKind::out_of_memory, std::to_string(sets) + " sets of weights take " +
                                              std::to_string(bytes) + " bytes and " +
                                              std::to_string(available) + " are available"}};
    };
    // The system hands out memory that it does not have and kills the process that uses it.
    if (available > 0 && bytes > available) return too_big();
    try {
      return std::unique_ptr<LoadedLayer>(
          std::make_unique<CpuLoadedLayer>(problem, *served, *level_, experts, sets));
    } catch (const std::bad_alloc&) {
      return too_big();
    }
  }

  Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const override {
    if (auto refusal = refuses(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    const auto served = find_recipe(*problem.scheme, problem.layer);
    return measured_ceilings(kernels(*level_).dot_unit(served->recipe.activation));
  }

  std::optional<Refusal> refuses_op(const OpProblem& problem) const override {
    if (!level_) return Refusal{RefusalReason::instruction_set, level_.error()};
    const CpuOp* op = find_cpu_op(problem.op);
    return op != nullptr ? op->refuses(problem) : Backend::refuses_op(problem);
  }

  Config default_op_config(const OpProblem& problem) const override {
    return refuses_op(problem) ? Config{} : find_cpu_op(problem.op)->default_config(problem);
  }

  std::optional<Refusal> refuses_op_config(const OpProblem& problem,
                                           const Config& config) const override {
    if (auto refusal = refuses_op(problem)) return refusal;
    return find_cpu_op(problem.op)->refuses_config(problem, config);
  }

  Expected<std::unique_ptr<LoadedOp>, Fault> load_op(const OpProblem& problem,
                                                     std::span<const Tensor> weights,
                                                     int weight_sets) const override {
    if (auto refusal = refuses_op(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    return load_cpu_op(problem, weights, weight_sets, *level_);
  }

  Expected<Ceilings, Fault> measure_op_ceilings(const OpProblem& problem) const override {
    if (auto refusal = refuses_op(problem)) {
      return Unexpected{Fault{FaultKind::error, refusal->sentence}};
    }
    const auto unit = find_cpu_op(problem.op)->dot_unit(problem, kernels(*level_));
    auto ceilings = measured_ceilings(unit.value_or(DotUnit::fp32));
    if (ceilings && !unit) ceilings->dot_flops_per_s = 0;
    return ceilings;
  }

 private:
  Expected<Ceilings, Fault> measured_ceilings(DotUnit unit) const {
    try {
      return cpu::measure_ceilings(kernels(*level_), unit, machine().processors,
                                   machine().last_level_cache_bytes);
    } catch (const std::bad_alloc&) {
      return Unexpected{
          Fault{FaultKind::out_of_memory, "no memory for the buffer that measures the read rate"}};
    }
  }

  Expected<IsaLevel, std::string> level_;
};

}  // namespace

const Backend& cpu_backend() {
  static const CpuBackend backend(chosen_isa_level());
  return backend;
}

std::unique_ptr<const Backend> make_cpu_backend(cpu::IsaLevel level) {
  return std::make_unique<CpuBackend>(level);
}

}  // namespace moegauge
