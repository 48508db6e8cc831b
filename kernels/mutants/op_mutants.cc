#include "kernels/mutants/op_mutants.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

namespace moegauge {
namespace {

using Tensors = std::vector<Tensor>;

struct OpMutation {
  std::string_view name;
  std::string_view op = {};  // empty: every op
  // What an op that it applies to must have, beside its name.
  bool (*applies)(const OpProblem&) = nullptr;
  void (*inputs)(const OpProblem&, Tensors&) = nullptr;
  void (*weights)(const OpProblem&, Tensors&) = nullptr;
  void (*outputs)(const OpProblem&, const Tensors& inputs, std::int64_t runs, Tensors&) = nullptr;
  bool runs = true, poisons = true;
};

class MutantOpPlan final : public OpPlan {
 public:
  MutantOpPlan(const OpMutation& mutation, const OpProblem& problem, std::unique_ptr<OpPlan> plan)
      : mutation_(mutation), problem_(problem), plan_(std::move(plan)) {}

  const KernelIdentity& identity() const override { return plan_->identity(); }
  int slots() const override { return plan_->slots(); }
  std::optional<Fault> set_inputs(int slot, std::span<const Tensor> inputs) override {
    Tensors& kept = inputs_[slot];
    kept.assign(inputs.begin(), inputs.end());
    Tensors spoiled = kept;
    if (mutation_.inputs != nullptr) mutation_.inputs(problem_, spoiled);
    return plan_->set_inputs(slot, spoiled);
  }
  std::optional<Fault> poison() override {
    return mutation_.poisons ? plan_->poison() : std::nullopt;
  }
  Expected<double, Fault> run(const RunRequest& request) override {
    ++runs_;
    if (!mutation_.runs) return 1e-3 * static_cast<double>(request.calls);
    return plan_->run(request);
  }
  std::optional<Fault> fetch(int slot, std::span<Tensor> outputs) override {
    if (auto fault = plan_->fetch(slot, outputs)) return fault;
    // A poisoned output is looked at before a run and must be seen as it is.
    if (mutation_.outputs == nullptr || runs_ == 0 || is_poisoned(outputs)) return std::nullopt;
    Tensors spoiled(outputs.begin(), outputs.end());
    mutation_.outputs(problem_, inputs_[slot], runs_, spoiled);
    std::ranges::copy(spoiled, outputs.begin());
    return std::nullopt;
  }

 private:
  static bool is_poisoned(std::span<const Tensor> outputs) {
    return std::ranges::all_of(outputs, [](const Tensor& output) {
      Tensor poisoned = output;
      moegauge::poison(poisoned);
      return poisoned.bytes == output.bytes;
    });
  }

  const OpMutation& mutation_;
  const OpProblem problem_;
  std::unique_ptr<OpPlan> plan_;
  std::map<int, Tensors> inputs_;
  std::int64_t runs_ = 0;
};

class MutantLoadedOp final : public LoadedOp {
 public:
  MutantLoadedOp(const OpMutation& mutation, std::unique_ptr<LoadedOp> op)
      : mutation_(mutation), op_(std::move(op)) {}
  int weight_sets() const override { return op_->weight_sets(); }
  Expected<std::unique_ptr<OpPlan>, Fault> plan(const OpProblem& problem, const Config& config,
                                                int slots) override {
    auto plan = op_->plan(problem, config, slots);
    if (!plan) return plan;
    return std::unique_ptr<OpPlan>(
        std::make_unique<MutantOpPlan>(mutation_, problem, std::move(*plan)));
  }

 private:
  const OpMutation& mutation_;
  std::unique_ptr<LoadedOp> op_;
};

class OpMutantBackend final : public Backend {
 public:
  explicit OpMutantBackend(const OpMutation& mutation)
      : mutation_(mutation), name_("op_mutant:" + std::string(mutation.name)) {}

  std::string_view name() const override { return name_; }
  Availability availability() const override { return base_.availability(); }
  Device device() const override { return base_.device(); }
  std::optional<Refusal> refuses(const Problem&) const override {
    return Refusal{RefusalReason::scheme, name_ + " serves single ops"};
  }
  Config default_config(const Problem&) const override { return {}; }
  std::optional<Refusal> refuses_config(const Problem& problem, const Config&) const override {
    return refuses(problem);
  }
  std::string_view config_folder() const override { return ""; }
  Expected<std::unique_ptr<LoadedLayer>, Fault> load(const Problem& problem, const ExpertSource&,
                                                     int) const override {
    return Unexpected{Fault{FaultKind::error, refuses(problem)->sentence}};
  }
  Expected<Ceilings, Fault> measure_ceilings(const Problem& problem) const override {
    return Unexpected{Fault{FaultKind::error, refuses(problem)->sentence}};
  }

  std::optional<Refusal> refuses_op(const OpProblem& problem) const override {
    const bool of_it = mutation_.op.empty() || mutation_.op == problem.op;
    if (!of_it || (mutation_.applies != nullptr && !mutation_.applies(problem))) {
      return Refusal{RefusalReason::op, name_ + " would not differ from a right kernel"};
    }
    return base_.refuses_op(problem);
  }
  Config default_op_config(const OpProblem& problem) const override {
    return base_.default_op_config(problem);
  }
  std::optional<Refusal> refuses_op_config(const OpProblem& problem,
                                           const Config& config) const override {
    if (auto refusal = refuses_op(problem)) return refusal;
    return base_.refuses_op_config(problem, config);
  }
  Expected<std::unique_ptr<LoadedOp>, Fault> load_op(const OpProblem& problem,
                                                     std::span<const Tensor> weights,
                                                     int weight_sets) const override {
    Tensors spoiled(weights.begin(), weights.end());
    if (mutation_.weights != nullptr) mutation_.weights(problem, spoiled);
    auto op = base_.load_op(problem, spoiled, weight_sets);
    if (!op) return op;
    return std::unique_ptr<LoadedOp>(std::make_unique<MutantLoadedOp>(mutation_, std::move(*op)));
  }
  Expected<Ceilings, Fault> measure_op_ceilings(const OpProblem& problem) const override {
    return base_.measure_op_ceilings(problem);
  }

 private:
  const OpMutation& mutation_;
  std::string name_;
  const Backend& base_ = cpu_backend();
};

// ---- what is spoiled ----

void zero_outputs(const OpProblem&, const Tensors&, std::int64_t, Tensors& outputs) {
  for (Tensor& output : outputs) std::ranges::fill(output.bytes, std::byte{0});
}

void change_on_every_second_run(const OpProblem&, const Tensors&, std::int64_t runs,
                                Tensors& outputs) {
  if (runs % 2 == 0) outputs[0].bytes[0] ^= std::byte{1};
}

bool has_bias(const OpProblem& p) { return p.correction_bias; }
bool has_none(const OpProblem& p) { return !p.correction_bias; }

void weigh_with_bias(const OpProblem& p, const Tensors& inputs, std::int64_t, Tensors& outputs) {
  const auto ids = outputs[0].as<std::int32_t>();
  const auto bias = inputs[1].as<float>();
  const auto slots = static_cast<std::size_t>(p.router.slots());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % slots >= static_cast<std::size_t>(p.router.top_k)) continue;
    outputs[1].as<float>()[i] += bias[static_cast<std::size_t>(ids[i])];
  }
}

// Experts in reverse order before and after: a right choice, but for ties.
void reverse_experts(const OpProblem& p, Tensors& inputs) {
  const auto experts = static_cast<std::size_t>(p.router.experts);
  for (Tensor& tensor : inputs) {
    const auto values = tensor.as<float>();
    for (std::size_t i = 0; i < values.size(); i += experts) {
      std::ranges::reverse(values.subspan(i, experts));
    }
  }
}
void reverse_ids(const OpProblem& p, const Tensors&, std::int64_t, Tensors& outputs) {
  for (std::int32_t& id : outputs[0].as<std::int32_t>()) {
    if (id < p.router.experts) id = static_cast<std::int32_t>(p.router.experts) - 1 - id;
  }
}

void say_next_expert(const OpProblem&, const Tensors&, std::int64_t, Tensors& outputs) {
  ++outputs[1].as<std::int32_t>()[0];
}

void lose_a_pair(const OpProblem&, const Tensors&, std::int64_t, Tensors& outputs) {
  const auto sorted = outputs[0].as<std::int32_t>();
  if (sorted.size() > 1) sorted[1] = sorted[0];
}

void truncate_codes(const OpProblem&, const Tensors&, std::int64_t, Tensors& outputs) {
  // A code less in magnitude wherever there is one: as if a third were rounded the wrong way.
  const auto codes = outputs[0].as<std::uint8_t>();
  for (std::size_t i = 0; i < codes.size(); i += 3) {
    if ((codes[i] & 0x7Fu) > 1 && (codes[i] & 0x7Fu) < 0x7Fu) --codes[i];
  }
}

void double_scales(const OpProblem&, const Tensors&, std::int64_t, Tensors& outputs) {
  if (outputs[1].spec.type == TensorType::e8m0) {
    for (std::uint8_t& code : outputs[1].as<std::uint8_t>()) ++code;
  } else {
    for (float& scale : outputs[1].as<float>()) scale *= 2;
  }
}

void swap_gate_up(const OpProblem& p, Tensors& inputs) {
  const auto n = static_cast<std::size_t>(p.layer.intermediate_size);
  const auto values = inputs[0].as<std::uint16_t>();
  for (std::size_t row = 0; row < values.size(); row += 2 * n) {
    const auto both = values.subspan(row, 2 * n);
    if (p.layer.gate_up_order == GateUpOrder::concatenated) {
      std::swap_ranges(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(n),
                       both.begin() + static_cast<std::ptrdiff_t>(n));
    } else {
      for (std::size_t i = 0; i < 2 * n; i += 2) std::swap(both[i], both[i + 1]);
    }
  }
}

void scale_last_slot(const OpProblem& p, Tensors& inputs, float factor) {
  const auto top_k = static_cast<std::size_t>(p.layer.top_k);
  const auto weights = inputs[1].as<float>();
  for (std::size_t i = top_k - 1; i < weights.size(); i += top_k) weights[i] *= factor;
}
void double_last_slot(const OpProblem& p, Tensors& inputs) { scale_last_slot(p, inputs, 2); }
void drop_last_slot(const OpProblem& p, Tensors& inputs) { scale_last_slot(p, inputs, 0); }

// Zeros in the last sixteenth of every row of a.
void drop_k_tail(const OpProblem&, Tensors& inputs) {
  Tensor& a = inputs[0];
  const auto row = static_cast<std::size_t>(a.spec.shape.back() * element_bytes(a.spec.type));
  for (std::size_t i = 0; i < a.bytes.size(); i += row) {
    std::ranges::fill(std::span(a.bytes).subspan(i + row - row / 16, row / 16), std::byte{0});
  }
}

bool two_experts(const OpProblem& p) { return p.layer.local_experts() > 1; }
void swap_experts(const OpProblem& p, Tensors& weights) {
  for (Tensor& tensor : weights) {
    const auto one = static_cast<std::ptrdiff_t>(tensor.bytes.size()) / p.layer.local_experts();
    std::swap_ranges(tensor.bytes.begin(), tensor.bytes.begin() + one, tensor.bytes.begin() + one);
  }
}

constexpr std::array kMutations = {
    OpMutation{.name = "zeros", .outputs = zero_outputs},
    OpMutation{.name = "stale", .runs = false},
    OpMutation{.name = "nondeterministic", .outputs = change_on_every_second_run},
    OpMutation{.name = "unpoisoned", .poisons = false},
    OpMutation{.name = "route_bias_in_weight",
               .op = "route",
               .applies = has_bias,
               .outputs = weigh_with_bias},
    OpMutation{.name = "route_last_of_ties",
               .op = "route",
               .applies = has_none,  // no two experts have the same bias
               .inputs = reverse_experts,
               .outputs = reverse_ids},
    OpMutation{.name = "align_wrong_expert", .op = "align", .outputs = say_next_expert},
    OpMutation{.name = "align_lost_pair", .op = "align", .outputs = lose_a_pair},
    OpMutation{.name = "quantize_truncates", .op = "quantize", .outputs = truncate_codes},
    OpMutation{.name = "quantize_shifted_scale", .op = "quantize", .outputs = double_scales},
    OpMutation{.name = "activation_swapped", .op = "activation", .inputs = swap_gate_up},
    OpMutation{.name = "reduce_doubled_weight", .op = "reduce", .inputs = double_last_slot},
    OpMutation{.name = "reduce_dropped_slot", .op = "reduce", .inputs = drop_last_slot},
    OpMutation{.name = "gemm_dropped_k_tail", .op = "grouped_gemm", .inputs = drop_k_tail},
    OpMutation{.name = "gemm_wrong_expert",
               .op = "grouped_gemm",
               .applies = two_experts,
               .weights = swap_experts},
};

}  // namespace

std::span<const Backend* const> op_mutant_backends() {
  static const auto mutants = [] {
    std::vector<std::unique_ptr<const Backend>> all;
    for (const OpMutation& mutation : kMutations) {
      all.push_back(std::make_unique<OpMutantBackend>(mutation));
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
