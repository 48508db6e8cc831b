#include "kernels/mutants/mutants.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/mutants/mutated_experts.h"
#include "reference/formats/bf16.h"

namespace moegauge {
namespace {

struct SpoiledInputs {
  std::vector<std::uint16_t> x;
  std::vector<std::int32_t> topk_ids;
  std::vector<float> topk_weights;
};
using Output = std::span<std::uint16_t>;

// What an output came from.
struct Origin {
  std::int64_t tokens = 0;
  std::int64_t runs = 0;                  // so far
  bool middle_set = false;                // computed with the middle one of the weight sets
  std::span<const std::uint16_t> before;  // slot 0 after the run before, where `remembers`
};

// What one mutant spoils; everything else is as in the backend that it wraps.
struct Mutation {
  std::string_view name;
  // A sentence where this mutant would not differ from a correct kernel.
  std::string (*harmless)(const Problem&) = nullptr;
  std::unique_ptr<const ExpertSource> (*experts)(const Problem&, const ExpertSource&) = nullptr;
  void (*inputs)(const Layer&, std::int64_t tokens, SpoiledInputs&) = nullptr;
  Expected<double, Fault> (*run)(const RunRequest&) = nullptr;  // instead of the kernel
  void (*output)(const Layer&, const Origin&, Output) = nullptr;
  bool remembers = false;
  bool poisons = true;
};

class MutantPlan final : public Plan {
 public:
  MutantPlan(const Mutation& mutation, const Layer& layer, std::int64_t tokens, int sets,
             std::unique_ptr<Plan> plan)
      : mutation_(mutation),
        layer_(layer),
        tokens_(tokens),
        sets_(static_cast<std::size_t>(sets)),
        plan_(std::move(plan)) {}

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
  std::optional<Fault> poison() override {
    ran_ = false;
    return mutation_.poisons ? plan_->poison() : std::nullopt;
  }
  Expected<double, Fault> run(const RunRequest& request) override {
    ++runs_;
    ran_ = true;
    last_ = request;
    auto seconds = mutation_.run != nullptr ? mutation_.run(request) : plan_->run(request);
    if (!mutation_.remembers || !seconds) return seconds;
    before_ = std::exchange(
        now_, std::vector<std::uint16_t>(static_cast<std::size_t>(tokens_ * layer_.hidden_size)));
    if (auto fault = plan_->fetch(0, now_)) return Unexpected{std::move(*fault)};
    return seconds;
  }
  std::optional<Fault> fetch(int slot, Output y) override {
    if (auto fault = plan_->fetch(slot, y)) return fault;
    // A wrong kernel spoils what it computes, not the NaN that poison() has just left.
    if (mutation_.output == nullptr || tokens_ == 0 || !ran_) return std::nullopt;
    const bool middle = last_set(static_cast<std::size_t>(slot)) == sets_ / 2;
    mutation_.output(layer_, {tokens_, runs_, middle, before_}, y);
    return std::nullopt;
  }

 private:
  // The weight set of the slot's last call; none where it had no call.
  std::optional<std::size_t> last_set(std::size_t slot) const {
    if (!last_) return std::nullopt;
    const auto slots = static_cast<std::size_t>(plan_->slots());
    for (std::int64_t call = last_->calls; call-- > 0;) {
      if (last_->slot_of(call, slots) == slot) return last_->set_of(call, sets_);
    }
    return std::nullopt;
  }

  const Mutation& mutation_;
  const Layer layer_;
  const std::int64_t tokens_;
  const std::size_t sets_;
  std::unique_ptr<Plan> plan_;
  std::int64_t runs_ = 0;
  bool ran_ = false;  // since the last poison()
  std::optional<RunRequest> last_;
  std::vector<std::uint16_t> before_, now_;  // slot 0 after the last two runs
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
    return std::unique_ptr<Plan>(std::make_unique<MutantPlan>(
        mutation_, layer_, tokens, loaded_->weight_sets(), std::move(*plan)));
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

void zero_output(const Layer&, const Origin&, Output y) { std::ranges::fill(y, std::uint16_t{0}); }

void negate_middle_row(const Layer& layer, const Origin& origin, Output y) {
  for (std::uint16_t& v : row(layer, origin.tokens / 2, y)) {
    v = static_cast<std::uint16_t>(v ^ kSign);
  }
}

void negate_on_every_second_run(const Layer& layer, const Origin& origin, Output y) {
  if (origin.runs % 2 == 0) negate_middle_row(layer, origin, y);
}

void negate_with_the_middle_set(const Layer& layer, const Origin& origin, Output y) {
  if (origin.middle_set) negate_middle_row(layer, origin, y);
}

void keep_an_earlier_row(const Layer& layer, const Origin& origin, Output y) {
  if (origin.before.empty()) return;
  const Output middle = row(layer, origin.tokens / 2, y);
  std::ranges::copy(
      origin.before.subspan(static_cast<std::size_t>(middle.data() - y.data()), middle.size()),
      middle.begin());
}

void one_nan(const Layer& layer, const Origin& origin, Output y) {
  row(layer, origin.tokens / 2, y).front() = kNan;
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

// As a kernel that keeps router weights in the activations' type.
void narrow_weights(const Layer&, std::int64_t, SpoiledInputs& in) {
  for (float& w : in.topk_weights) w = bf16_to_float(float_to_bf16(w));
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
    Mutation{.name = "narrowed_router_weight", .inputs = narrow_weights},
    Mutation{.name = "shifted_scale", .harmless = one_scale, .experts = shifted_scales},
    Mutation{.name = "dropped_token", .inputs = drop_middle_token},
    Mutation{.name = "bad_row", .output = negate_middle_row},
    Mutation{.name = "nan", .output = one_nan},
    Mutation{.name = "nondeterministic", .output = negate_on_every_second_run},
    Mutation{.name = "weight_set", .output = negate_with_the_middle_set},
    Mutation{.name = "earlier_row", .output = keep_an_earlier_row, .remembers = true},
    Mutation{.name = "unpoisoned", .poisons = false},
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
