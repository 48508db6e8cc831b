#include "kernels/mutants/mutants.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/mutants/mutated_experts.h"

namespace moegauge {
namespace {

struct SpoiledInputs {
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> topk_ids;
  std::vector<float> topk_weights;
};
using Output = std::span<std::uint16_t>;

// What one mutant spoils; everything else is as in the backend that it wraps.
struct Mutation {
  std::string_view name;
  // A sentence where this mutant would not differ from a correct kernel.
  std::string (*harmless)(const Problem&) = nullptr;
  std::unique_ptr<const ExpertSource> (*experts)(const Problem&, const ExpertSource&) = nullptr;
  void (*inputs)(const Layer&, std::int64_t tokens, SpoiledInputs&) = nullptr;
  Expected<double, Fault> (*run)(const RunRequest&) = nullptr;  // instead of the kernel
  void (*output)(const Layer&, std::int64_t tokens, std::int64_t runs, Output) = nullptr;
};

class MutantPlan final : public Plan {
 public:
  MutantPlan(const Mutation& mutation, const Layer& layer, std::int64_t tokens,
             std::unique_ptr<Plan> plan)
      : mutation_(mutation), layer_(layer), tokens_(tokens), plan_(std::move(plan)) {}

  const KernelIdentity& identity() const override { return plan_->identity(); }
  int slots() const override { return plan_->slots(); }
  std::optional<Fault> set_inputs(int slot, const LayerInputs& in) override {
    if (mutation_.inputs == nullptr) return plan_->set_inputs(slot, in);
    SpoiledInputs s = {{in.x.begin(), in.x.end()},
                       {in.topk_ids.begin(), in.topk_ids.end()},
                       {in.topk_weights.begin(), in.topk_weights.end()}};
    mutation_.inputs(layer_, in.tokens, s);
    return plan_->set_inputs(slot, {in.tokens, s.x, s.topk_ids, s.topk_weights});
  }
  std::optional<Fault> poison() override { return plan_->poison(); }
  Expected<double, Fault> run(const RunRequest& request) override {
    ++runs_;
    return mutation_.run != nullptr ? mutation_.run(request) : plan_->run(request);
  }
  std::optional<Fault> fetch(int slot, Output y) override {
    if (auto fault = plan_->fetch(slot, y)) return fault;
    if (mutation_.output != nullptr && tokens_ > 0) mutation_.output(layer_, tokens_, runs_, y);
    return std::nullopt;
  }

 private:
  const Mutation& mutation_;
  const Layer layer_;
  const std::int64_t tokens_;
  std::unique_ptr<Plan> plan_;
  std::int64_t runs_ = 0;
};

class MutantLayer final : public LoadedLayer {
 public:
  MutantLayer(const Mutation& mutation, const Layer& layer, std::unique_ptr<LoadedLayer> loaded)
      : mutation_(mutation), layer_(layer), loaded_(std::move(loaded)) {}

  std::int64_t weight_bytes() const override { return loaded_->weight_bytes(); }
  int weight_sets() const override { return loaded_->weight_sets(); }
  Expected<std::unique_ptr<Plan>, Fault> plan(std::int64_t tokens, const Config& config,
                                              int slots) override {
    auto plan = loaded_->plan(tokens, config, slots);
    if (!plan) return plan;
    return std::unique_ptr<Plan>(
        std::make_unique<MutantPlan>(mutation_, layer_, tokens, std::move(*plan)));
  }

 private:
  const Mutation& mutation_;
  const Layer layer_;
  std::unique_ptr<LoadedLayer> loaded_;
};

class MutantBackend final : public Backend {
 public:
  explicit MutantBackend(const Mutation& mutation) : mutation_(mutation), name_("mutant:") {
    name_ += mutation.name;
  }

  std::string_view name() const override { return name_; }
  Availability availability() const override { return base_.availability(); }
  Device device() const override { return base_.device(); }
  std::optional<Refusal> refuses(const Problem& problem) const override {
    if (auto refusal = base_.refuses(problem)) return refusal;
    const std::string harmless =
        mutation_.harmless != nullptr ? mutation_.harmless(problem) : std::string();
    if (!harmless.empty()) return Refusal{RefusalReason::scheme, name_ + ": " + harmless};
    return std::nullopt;
  }
  Config default_config(const Problem& problem) const override {
    return base_.default_config(problem);
  }
  std::optional<Refusal> refuses_config(const Problem& problem,
                                        const Config& config) const override {
    if (auto refusal = refuses(problem)) return refusal;
    return base_.refuses_config(problem, config);
  }
  std::string_view config_folder() const override { return base_.config_folder(); }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem,
                                                     const ExpertSource& experts,
                                                     int weight_sets) const override {
    std::unique_ptr<const ExpertSource> spoiled;
    if (mutation_.experts != nullptr) spoiled = mutation_.experts(problem, experts);
    auto layer = base_.load(problem, spoiled ? *spoiled : experts, weight_sets);
    if (!layer) return layer;
    return std::unique_ptr<LoadedLayer>(
        std::make_unique<MutantLayer>(mutation_, problem.layer, std::move(*layer)));
  }
  Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const override {
    return base_.measure_ceilings(problem);
  }

 private:
  const Mutation& mutation_;
  std::string name_;
  const Backend& base_ = cpu_backend();
};

// ---- what is spoiled ----

constexpr std::uint16_t kNan = 0x7FFF;  // in bf16 and in fp16
constexpr std::uint16_t kSign = 0x8000;

Output row(const Layer& layer, std::int64_t r, Output y) {
  const auto k = static_cast<std::size_t>(layer.hidden_size);
  return y.subspan(static_cast<std::size_t>(r) * k, k);
}

void zero_output(const Layer&, std::int64_t, std::int64_t, Output y) {
  std::ranges::fill(y, std::uint16_t{0});
}

void negate_middle_row(const Layer& layer, std::int64_t tokens, std::int64_t, Output y) {
  for (std::uint16_t& v : row(layer, tokens / 2, y)) v = static_cast<std::uint16_t>(v ^ kSign);
}

void negate_on_every_second_run(const Layer& layer, std::int64_t tokens, std::int64_t runs,
                                Output y) {
  if (runs % 2 == 0) negate_middle_row(layer, tokens, runs, y);
}

void one_nan(const Layer& layer, std::int64_t tokens, std::int64_t, Output y) {
  row(layer, tokens / 2, y).front() = kNan;
}

void zero_last_columns(const Layer& layer, std::int64_t tokens, SpoiledInputs& in) {
  const std::int64_t tail = (layer.hidden_size + 15) / 16;
  for (std::int64_t m = 0; m < tokens; ++m) {
    std::ranges::fill(row(layer, m, in.x).last(static_cast<std::size_t>(tail)), std::uint16_t{0});
  }
}

void double_weights(const Layer&, std::int64_t, SpoiledInputs& in) {
  for (float& w : in.topk_weights) w *= 2;
}

void drop_middle_token(const Layer& layer, std::int64_t tokens, SpoiledInputs& in) {
  for (std::int64_t t = 0; t < layer.top_k && tokens > 0; ++t) {
    in.topk_ids[static_cast<std::size_t>(tokens / 2 * layer.top_k + t)] = -1;
  }
}

std::string one_expert(const Problem& problem) {
  return problem.layer.local_experts() < 2 ? "one local expert has no neighbour" : "";
}

std::string one_scale(const Problem& problem) {
  const auto few = [&](Role role) { return scale_count(problem, role) < 2; };
  return few(Role::w13) && few(Role::w2) ? "no weight scale has a neighbour" : "";
}

// ---- faults ----

// Long enough to be no timer's artefact.
Expected<double, Fault> nothing(const RunRequest& request) {
  return 1e-3 * static_cast<double>(request.calls);
}

Expected<double, Fault> segv(const RunRequest&) {
  // By signal, also where a sanitiser would handle it.
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
  return 0.0;
}

Expected<double, Fault> aborted(const RunRequest&) { std::abort(); }

Expected<double, Fault> exited(const RunRequest&) { std::_Exit(0); }

Expected<double, Fault> hang(const RunRequest&) {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

Expected<double, Fault> out_of_memory(const RunRequest&) {
  return Unexpected{Fault{FaultKind::out_of_memory, "mutant:out_of_memory never has any"}};
}

constexpr std::array kMutations = {
    Mutation{.name = "zeros", .output = zero_output},
    Mutation{.name = "stale", .run = nothing},
    Mutation{.name = "dropped_k_tail", .inputs = zero_last_columns},
    Mutation{.name = "swapped_gate_up", .experts = swapped_gate_up},
    Mutation{.name = "wrong_expert", .harmless = one_expert, .experts = neighbours_weights},
    Mutation{.name = "doubled_router_weight", .inputs = double_weights},
    Mutation{.name = "shifted_scale", .harmless = one_scale, .experts = shifted_scales},
    Mutation{.name = "dropped_token", .inputs = drop_middle_token},
    Mutation{.name = "bad_row", .output = negate_middle_row},
    Mutation{.name = "nan", .output = one_nan},
    Mutation{.name = "nondeterministic", .output = negate_on_every_second_run},
    Mutation{.name = "segv", .run = segv},
    Mutation{.name = "abort", .run = aborted},
    Mutation{.name = "exit", .run = exited},
    Mutation{.name = "hang", .run = hang},
    Mutation{.name = "out_of_memory", .run = out_of_memory}};

}  // namespace

std::span<const Backend* const> mutant_backends() {
  static const auto mutants = [] {
    std::vector<std::unique_ptr<const Backend>> all;
    for (const Mutation& mutation : kMutations) {
      all.push_back(std::make_unique<MutantBackend>(mutation));
    }
    return all;
  }();
  static const auto pointers = [] {
    std::vector<const Backend*> all;
    for (const auto& mutant : mutants) all.push_back(mutant.get());
    return all;
  }();
  return pointers;
}

}  // namespace moegauge
